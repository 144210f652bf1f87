import Synchronization

/// A loop's handlers for an observer on another thread: the running one, the longest, and a recording of all.
///
/// Only a loop that a console watches has one. The loop then notes each handler before the call, without reading a
/// clock, unless `isMeasuring`, which costs as much as `LoopMetrics.Measured.handlers`.
// @unchecked Sendable: any thread may read the atomics; only the loop's thread accesses the rest.
package final class LoopProbe: @unchecked Sendable {
    // A sequence lock written by the loop's thread; odd while the words change.
    private let sequence = Atomic<UInt>(0)
    private let file = Atomic<UInt>(0)
    /// The line in the low half, then the kind's number, the descriptor plus one, and a bit for the presence of a
    /// handler.
    private let details = Atomic<UInt64>(0)
    private let began = Atomic<Int64>(LoopMeter.unknown)

    // On the loop's thread.
    @exclusivity(unchecked) package private(set) var longest: SlowHandler?
    @exclusivity(unchecked) var recording: LoopRecording?
    @exclusivity(unchecked) private var isInterrupted = false
    @exclusivity(unchecked) private var isOwn = false
    @exclusivity(unchecked) package fileprivate(set) var isMeasuring = false

    package init() {}

    package struct Running: Hashable, Sendable {
        package let kind: HandlerKind
        package let callSite: CallSite?
        package let descriptor: CInt?
        /// Its beginning by the monotonic clock; `nil` if the loop did not read it.
        package let began: Int64?
        /// Differs for each handler, and for each return to an outer one.
        package let number: UInt
    }

    /// Any thread. The innermost running handler. `nil` between handlers, or if they change faster than this thread
    /// reads.
    package var running: Running? {
        for _ in 0..<64 {
            let number = sequence.load(ordering: .acquiring)
            let words = Words(
                file: file.load(ordering: .relaxed), details: details.load(ordering: .relaxed),
                began: began.load(ordering: .relaxed))
            atomicMemoryFence(ordering: .acquiring)
            if number & 1 == 0, sequence.load(ordering: .relaxed) == number { return words.handler(number) }
        }
        return nil
    }

    /// The sequence lock's words, to be restored when a handler ends.
    struct Words {
        var file: UInt = 0
        var details: UInt64 = 0
        var began = LoopMeter.unknown

        fileprivate func handler(_ number: UInt) -> Running? {
            guard details != 0 else { return nil }
            let descriptor = CInt(details >> 40 & 0x7F_FFFF) - 1
            return Running(
                kind: HandlerKind.numbered[Int(details >> 32 & 0xFF)],
                callSite: CallSite(fileAt: file, line: UInt32(truncatingIfNeeded: details)),
                descriptor: descriptor < 0 ? nil : descriptor, began: began == LoopMeter.unknown ? nil : began,
                number: number)
        }
    }

    // MARK: On the loop's thread

    @exclusivity(unchecked) private var current = Words()

    @inline(__always)
    private func store(_ words: Words) {
        current = words
        let number = sequence.load(ordering: .relaxed)
        sequence.store(number &+ 1, ordering: .relaxed)
        atomicMemoryFence(ordering: .releasing)
        file.store(words.file, ordering: .relaxed)
        details.store(words.details, ordering: .relaxed)
        self.began.store(words.began, ordering: .relaxed)
        sequence.store(number &+ 2, ordering: .releasing)
    }

    /// - Returns: the words for `handlerDidEnd`.
    @inline(__always)
    func handlerBegins(_ kind: HandlerKind, _ callSite: CallSite?, _ descriptor: Int, at moment: Int64) -> Words {
        let outer = current
        let place = UInt64(kind.number) << 32 | UInt64(descriptor + 1) << 40
        store(
            Words(
                file: callSite?.fileAddress ?? 0, details: place | UInt64(callSite?.line ?? 0) | 1 << 63,
                began: moment))
        return outer
    }

    @inline(__always)
    func handlerDidEnd(_ outer: Words) {
        if outer.details != 0 { return store(outer) }
        // No handler runs, whatever the other words are.
        current.details = 0
        details.store(0, ordering: .relaxed)
    }

    /// - Returns: the previous value.
    func setInterrupted(_ value: Bool) -> Bool {
        defer { isInterrupted = value }
        return isInterrupted
    }

    func note(_ handler: SlowHandler) {
        if isOwn { return isOwn = false }
        if handler.duration > longest?.duration ?? .zero { longest = handler }
    }

    /// The observer's own handler is not reported.
    fileprivate func disregardHandler() { isOwn = true }

    fileprivate func restart() { longest = nil }
}

extension EventLoop {
    /// On the loop's thread. Begins to show the loop's handlers to `probe`, or changes what it measures.
    /// - Parameter isMeasuring: true to read the clock for each turn and handler.
    package func show(to probe: LoopProbe?, isMeasuring: Bool = false) {
        assertOwner()
        if let probe, meter.probe === probe, probe.isMeasuring == isMeasuring { return }
        probe?.isMeasuring = isMeasuring
        meter.probe = probe
    }

    /// On the loop's thread. The observer's own handler is not among the longest.
    package func disregardHandler() { meter.probe?.disregardHandler() }

    /// Begins to record at most `most` slices in the loop's probe, which must measure.
    package func beginRecording(atMost most: Int) {
        meter.probe?.recording = LoopRecording(of: jobs, atMost: most)
    }

    package func endRecording() -> LoopRecording? { meter.probe?.recording.take() }

    /// On the loop's thread. The loop's state for an observer, in constant time. Resets the longest times.
    package func beat() -> LoopBeat {
        let probe = meter.probe
        probe?.disregardHandler()
        defer { probe?.restart() }
        return LoopBeat(
            metrics: metrics(countingJobs: LoopBeat.mostJobs), nanosecondsWaiting: meter.nanosecondsWaiting,
            longestHandler: probe?.longest, nearestTimer: nextDeadline.map { $0.nanoseconds - clock.now.nanoseconds },
            moment: clock.now.nanoseconds)
    }
}

/// The numbers that a loop sends an observer several times a second.
package struct LoopBeat: Sendable {
    /// The highest count of ready jobs, which are counted one by one.
    package static var mostJobs: Int { 10_000 }

    package let metrics: LoopMetrics
    package let nanosecondsWaiting: Int64
    /// Since the previous beat, if measured.
    package let longestHandler: SlowHandler?
    /// The nanoseconds until the first timer is due; negative if late.
    package let nearestTimer: Int64?
    package let moment: Int64
}

extension HandlerKind {
    fileprivate static let numbered: [HandlerKind] = [.job, .timer, .watch, .signal, .hook, .promiseHandler]

    fileprivate var number: UInt8 {
        switch self {
        case .job: 0
        case .timer: 1
        case .watch: 2
        case .signal: 3
        case .hook: 4
        case .promiseHandler: 5
        }
    }
}
