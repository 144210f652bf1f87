import Promises
import Reactor
import ReactorIO
import ReactorLibc

extension Snapshot {
    /// All of it; the schema is in docs/guides/console.md.
    var json: String {
        var json = JSONText()
        json.object { json in
            json.add("schema", 1)
            json.add("time", time)
            json.add("uptime", seconds: uptime)
            json.add("process", Int(getpid()))
            json.add("program", program)
            json.object("tracing") { json in
                json.add("on", isTracing)
                json.add("secondsLeft", tracingLeft)
            }
            json.add("recording", isRecording)
            json.list("problems", problems) { problem, json in
                json.add("place", problem.place)
                json.add("detail", problem.detail)
            }
            json.list("loops", loops, add)
            json.list("objects", objects, add)
            json.object("connections") { json in
                json.add("count", allConnections.count)
                json.add("order", order.rawValue)
                json.list("list", Array(connections), add)
            }
            json.object("promises") { json in
                json.add("pending", pending)
                json.list("trees", promises, add)
            }
            json.object("events") { json in
                json.add("count", eventCount)
                json.list("list", events, add)
            }
            json.object("cost") { json in
                json.add("seconds", seconds: cost)
                json.add("longestPiece", seconds: longestPiece)
            }
            json.array("leftOut") { json in for text in leftOut { json.add(nil, text) } }
        }
        return json.text
    }

    private func add(_ loop: Loop, to json: inout JSONText) {
        let now = LoopClock.monotonic.now.nanoseconds
        let metrics = loop.loop.last?.metrics
        json.add("name", loop.name)
        json.add("number", loop.loop.serial)
        json.add("thread", loop.loop.thread)
        json.add("state", loop.state.rawValue)
        json.add("silence", seconds: loop.silence)
        json.add("turnsPerSecond", loop.loop.turnRate)
        json.add("busy", loop.loop.busy)
        json.add("readyJobs", metrics?.readyJobs)
        json.add("waitingHandlers", metrics?.waitingHandlers)
        json.add("timers", metrics?.timers)
        json.add("nearestTimer", seconds: loop.loop.last?.nearestTimer)
        json.add("descriptors", metrics?.descriptors)
        json.add("holds", metrics?.holds)
        json.add("externalWork", metrics?.externalWork)
        for (name, seconds) in [("lag10", 10), ("lag60", 60)] {
            guard let lags = loop.loop.lags(ofSeconds: seconds, at: now) else { continue }
            json.object(name) { json in
                json.add("median", seconds: lags.median)
                json.add("p99", seconds: lags.p99)
                json.add("max", seconds: lags.most)
            }
        }
        json.array("lagCurve") { json in
            for lag in loop.loop.curve(at: now) { json.add(nil, seconds: lag) }
        }
        if let longest = loop.loop.longest {
            json.object("longestHandler") { json in
                json.add("kind", longest.kind.rawValue)
                json.add("line", longest.callSite)
                json.add("seconds", seconds: longest.duration.clampedNanoseconds)
            }
        }
        if let current = loop.current, current.time > 10_000_000 {
            json.object("currentHandler") { json in
                json.add("kind", current.handler.kind.rawValue)
                json.add("line", current.handler.callSite)
                json.add("of", loop.currentPlace)
                json.add("seconds", seconds: current.time)
                json.add("isAtLeast", current.handler.began == nil)
            }
        }
    }

    private func add(_ object: Object, to json: inout JSONText) {
        let facts = object.facts
        json.add("kind", facts.form.rawValue)
        json.add("name", object.name)
        json.add("loop", object.loop)
        json.add("line", facts.callSite)
        json.add("inUse", facts.inUse)
        json.add("free", facts.free)
        json.add("limit", facts.limit)
        json.add("waiting", facts.waiting)
        json.add("oldestWaiter", seconds: facts.oldestWaiter)
        json.add("finished", facts.ends?.count)
        json.add("finishedPerSecond", object.finishedPerSecond)
        json.add("sinceFinished", seconds: object.sinceFinished)
        json.add("state", facts.state)
        json.object("numbers") { json in for (name, value) in facts.others { json.add(name, value) } }
    }

    private func add(_ connection: ListedConnection, to json: inout JSONText) {
        let facts = connection.facts
        json.add("peer", facts.name)
        json.add("descriptor", Int(facts.descriptor))
        json.add("loop", connection.loop)
        json.add("listener", connection.listener?.name)
        json.add("age", seconds: connection.age)
        json.add("idle", seconds: connection.idle)
        json.add("received", facts.received)
        json.add("sent", facts.sent)
        json.add("queued", facts.queued)
        json.add("waitsFor", connection.waitsFor)
        json.add("filter", facts.filter)
        json.add("peerHasClosed", facts.hasEnded)
        json.add("isOld", connection.isOld)
    }

    private func add(_ tree: PromiseTree, to json: inout JSONText) {
        json.add("loop", tree.loop)
        json.add("pending", tree.pending)
        json.list("nodes", tree.nodes) { node, json in
            json.add("depth", node.depth)
            json.add("operation", node.group.operation)
            json.add("line", node.group.callSite)
            json.add("name", node.group.name)
            json.add("type", node.group.type)
            json.add("count", node.group.count)
            json.add("oldest", seconds: tree.ages(node)?.oldest)
            json.add("youngest", seconds: tree.ages(node)?.youngest)
            json.add("waitsFor", tree.work(of: node))
            json.add("lost", node.group.loss?.rawValue)
        }
    }

    private func add(_ event: EventRing.Event, to json: inout JSONText) {
        json.add("number", event.number)
        json.add("time", event.time)
        json.add("kind", event.kind.rawValue)
        json.add("text", event.text)
        json.add("line", event.callSite)
    }
}
