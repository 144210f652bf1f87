import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// A few seconds of all loops, as a file in the trace event format for ui.perfetto.dev.
// @unchecked Sendable: accessed on the console's loop; jobs on other loops only pass it back.
final class Recording: @unchecked Sendable {
    /// The maximum kept per loop: a few seconds of a busy loop, or tens of megabytes of text.
    private static var mostSlices: Int { 100_000 }
    /// The time after which a loop that has not answered is left out.
    private static var patience: Duration { .milliseconds(700) }

    private let loops: [WatchedLoop]
    private var began: Int64 = 0
    private var tracks: [(loop: WatchedLoop, recording: LoopRecording)] = []

    init(_ loops: [WatchedLoop]) { self.loops = loops }

    func begin() -> Guarantee<Void> {
        began = LoopClock.monotonic.now.nanoseconds
        let begun = loops.map { loop in
            ask(loop) { EventLoop.ofCurrentThread.beginRecording(atMost: Self.mostSlices) }
        }
        return when(resolved: begun).map { _ in }
    }

    func end() -> Guarantee<String> {
        let ended = loops.map { loop in
            ask(loop) { EventLoop.ofCurrentThread.endRecording() }.done { recording in
                if let recording { self.tracks.append((loop, recording)) }
            }
        }
        return when(resolved: ended).map { _ in self.text }
    }

    /// Ends the recording on loops that still record, because its visitor has left.
    func abandon() { for loop in loops { loop.remote.run { _ = EventLoop.ofCurrentThread.endRecording() } } }

    private func ask<Value: Sendable>(_ loop: WatchedLoop, _ body: @escaping @Sendable () -> Value) -> Promise<Value> {
        let (promise, resolver) = Promise<Value>.pending()
        let ended = { _ = resolver.reject(PromiseError.loopEnded) }
        if !loop.remote.post(InternalJob({ resolver.fulfill(body()) }, ifLoopEnds: ended)) { ended() }
        return promise.timeout(Self.patience)
    }

    // MARK: The file

    private var text: String {
        tracks.sort { $0.loop.serial < $1.loop.serial }
        var json = JSONText()
        json.object { json in
            json.add("displayTimeUnit", "ms")
            json.object("otherData") { addSummary(&$0) }
            json.array("traceEvents") { addEvents(&$0) }
        }
        return json.text
    }

    /// Adds the summary, shown as metadata in `chrome://tracing` and beside the page's link.
    private func addSummary(_ json: inout JSONText) {
        let each = EventLoop.current.measureRecording()
        let time = LoopClock.monotonic.now.nanoseconds - began
        let handlers = tracks.map { $0.recording.slices.count }.max() ?? 0
        let share = Double(each) * Double(handlers) / Double(max(time, 1)) * 100
        json.add("handlers of the busiest loop", handlers)
        json.add("cost", "\(each) ns for each handler: \(decimal(share, 2)) % of the busiest loop's time")
        let missing = loops.filter { loop in !tracks.contains { $0.loop === loop } }.map(\.name)
        let omitted = tracks.reduce(0) { $0 + $1.recording.omitted }
        json.add(
            "left out",
            [
                missing.isEmpty ? nil : "loops that did not answer: \(missing.joined(separator: ", "))",
                omitted == 0 ? nil : "\(omitted) slices beyond \(Self.mostSlices) for each loop",
            ].compactMap(\.self).joined(separator: "; "))
    }

    private func addEvents(_ json: inout JSONText) {
        for (loop, _) in tracks {
            add("M", loop.serial, "thread_name", at: nil, &json) { $0.object("args") { $0.add("name", loop.name) } }
        }
        var arrows = 0
        /// The last handler so far of each promise, with its track.
        var handlers: [Int: (loop: Int, slice: LoopRecording.Slice)] = [:]
        let slices = tracks.flatMap { track in
            track.recording.slices.map { (loop: track.loop.serial, slice: $0, all: track.recording) }
        }.sorted { $0.slice.began < $1.slice.began }
        for (loop, slice, recording) in slices {
            add(slice, loop, &json)
            guard case .handler(_, _, _, let subject) = slice.content else { continue }
            let step = RecordedStep(subject)
            var source: (loop: Int, slice: LoopRecording.Slice)?
            if slice.cause >= 0 {
                source = (loop, recording.slices[Int(slice.cause)])
            } else if let number = step?.source {
                source = handlers[number]
            }
            if let step { handlers[step.number] = (loop, slice) }
            guard let source else { continue }
            arrows += 1
            // An arrow's time must lie inside the slice where it begins.
            let start = max(source.slice.began, min(source.slice.ended, slice.began) - 1)
            for (phase, loop, moment) in [("s", source.loop, start), ("f", loop, slice.began)] {
                add(phase, loop, "made ready", at: moment, &json) { json in
                    json.add(["id": arrows, "cat": "made ready"])
                    if phase == "f" { json.add("bp", "e") }
                }
            }
        }
    }

    private func add(_ slice: LoopRecording.Slice, _ loop: Int, _ json: inout JSONText) {
        guard case .handler(let kind, let callSite, let descriptor, let subject) = slice.content else {
            let name = if case .wait = slice.content { "wait" } else { "turn" }
            return add("X", loop, name, at: slice.began, until: slice.ended, &json) { _ in }
        }
        let step = RecordedStep(subject)
        let place = (step?.callSite ?? callSite).map { " at \($0)" } ?? descriptor.map { " of descriptor \($0)" } ?? ""
        let name = (step?.operation ?? kind.rawValue) + place
        add("X", loop, name, at: slice.began, until: slice.ended, &json) { json in
            json.add("cat", kind.rawValue)
            json.object("args") { json in
                if let name = step?.name { json.add("name", name) }
                if let step { json.add("promise", step.number) }
            }
        }
    }

    /// Adds an event in the file's format, which has times in microseconds.
    private func add(
        _ phase: String, _ loop: Int, _ name: String, at moment: Int64?, until end: Int64? = nil,
        _ json: inout JSONText, _ others: (inout JSONText) -> Void
    ) {
        json.object { json in
            json.add(["ph": phase, "pid": Int(getpid()), "tid": loop, "name": name])
            if let moment { json.add("ts", Double(moment - began) / 1000) }
            if let moment, let end { json.add("dur", Double(max(end - moment, 0)) / 1000) }
            others(&json)
        }
    }
}
