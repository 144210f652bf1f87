import Promises
import Reactor
import ReactorIO
import ReactorLibc

extension Snapshot {
    /// The whole snapshot; the schema is in docs/guides/console.md.
    var json: String {
        var json = JSONText()
        json.object { json in
            json.add([
                "schema": 1, "time": time, "uptime": Seconds(uptime), "process": Int(getpid()), "program": program,
            ])
            json.object("tracing") { $0.add(["on": isTracing, "secondsLeft": tracingLeft]) }
            json.add("recording", isRecording)
            json.list("problems", problems) { $1.add(["place": $0.place, "detail": $0.detail]) }
            json.list("loops", loops, add)
            json.list("objects", objects, add)
            json.object("connections") { json in
                json.add(["count": allConnections.count, "order": order.rawValue])
                json.list("list", Array(connections), add)
            }
            json.object("promises") { json in
                json.add("pending", pending)
                json.list("trees", promises, add)
            }
            json.object("events") { json in
                json.add("count", eventCount)
                json.list("list", events) { event, json in
                    json.add(["number": event.number, "time": event.time, "kind": event.kind.rawValue])
                    json.add(["text": event.text, "line": event.callSite])
                }
            }
            json.object("cost") { $0.add(["seconds": Seconds(cost), "longestPiece": Seconds(longestPiece)]) }
            json.array("leftOut") { json in for text in leftOut { json.add(nil, text) } }
        }
        return json.text
    }

    private func add(_ loop: Loop, to json: inout JSONText) {
        let now = LoopClock.monotonic.now.nanoseconds
        let (watched, metrics) = (loop.loop, loop.loop.last?.metrics)
        json.add(["name": loop.name, "number": watched.serial, "thread": watched.thread])
        json.add(["state": loop.state.rawValue, "silence": Seconds(loop.silence)])
        json.add(["turnsPerSecond": watched.turnRate, "busy": watched.busy, "readyJobs": metrics?.readyJobs])
        json.add(["waitingHandlers": metrics?.waitingHandlers, "timers": metrics?.timers])
        json.add(["nearestTimer": Seconds(watched.last?.nearestTimer), "descriptors": metrics?.descriptors])
        json.add(["holds": metrics?.holds, "externalWork": metrics?.externalWork])
        for (name, seconds) in [("lag10", 10), ("lag60", 60)] {
            guard let lags = watched.lags(ofSeconds: seconds, at: now) else { continue }
            json.object(name) {
                $0.add(["median": Seconds(lags.median), "p99": Seconds(lags.p99), "max": Seconds(lags.most)])
            }
        }
        json.array("lagCurve") { json in for lag in watched.curve(at: now) { json.add(nil, Seconds(lag)) } }
        if let longest = watched.longest {
            json.object("longestHandler") { json in
                json.add(["kind": longest.kind.rawValue, "line": longest.callSite])
                json.add("seconds", Seconds(longest.duration.clampedNanoseconds))
            }
        }
        if let current = loop.current, current.time > 10_000_000 {
            json.object("currentHandler") { json in
                json.add(["kind": current.handler.kind.rawValue, "line": current.handler.callSite])
                json.add(["of": loop.currentPlace, "seconds": Seconds(current.time)])
                json.add("isAtLeast", current.handler.began == nil)
            }
        }
    }

    private func add(_ object: Object, to json: inout JSONText) {
        let facts = object.facts
        json.add(["kind": facts.form.rawValue, "name": object.name, "loop": object.loop, "line": facts.callSite])
        json.add(["inUse": facts.inUse, "free": facts.free, "limit": facts.limit, "waiting": facts.waiting])
        json.add(["oldestWaiter": Seconds(facts.oldestWaiter), "finished": facts.ends?.count])
        json.add(["finishedPerSecond": object.finishedPerSecond, "sinceFinished": Seconds(object.sinceFinished)])
        json.add("state", facts.state)
        json.object("numbers") { json in for (name, value) in facts.others { json.add(name, value) } }
    }

    private func add(_ connection: ListedConnection, to json: inout JSONText) {
        let facts = connection.facts
        json.add(["peer": facts.name, "descriptor": Int(facts.descriptor), "loop": connection.loop])
        json.add(["listener": connection.listener?.name, "age": Seconds(connection.age)])
        json.add(["idle": Seconds(connection.idle), "received": facts.received, "sent": facts.sent])
        json.add(["queued": facts.queued, "waitsFor": connection.waitsFor, "filter": facts.filter])
        json.add(["peerHasClosed": facts.hasEnded, "isOld": connection.isOld])
    }

    private func add(_ tree: PromiseTree, to json: inout JSONText) {
        json.add(["loop": tree.loop, "pending": tree.pending])
        json.list("nodes", tree.nodes) { node, json in
            let (group, ages) = (node.group, tree.ages(node))
            json.add(["depth": node.depth, "operation": group.operation, "line": group.callSite, "name": group.name])
            json.add(["type": group.type.map { "\($0)" }, "count": group.count, "oldest": Seconds(ages?.oldest)])
            json.add(["youngest": Seconds(ages?.youngest), "waitsFor": tree.work(of: node)])
            json.add("lost", group.loss?.rawValue)
        }
    }
}
