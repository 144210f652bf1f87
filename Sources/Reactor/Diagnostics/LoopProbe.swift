import Synchronization

/// A loop's handlers for an observer on another thread: the one that runs, the longest, and a recording of all.
///
/// A loop has none unless a console watches it, and then pays nothing; with one, it notes each handler before it calls
/// it, without reading a clock. `isMeasuring` makes it read the clock as for `LoopMetrics.Measured.handlers`.
// @unchecked Sendable: the atomics may be read by any thread; all else is accessed on the loop's thread only.
package final class LoopProbe: @unchecked Sendable {
    // A sequence lock with one writer, the loop's thread. The number is odd while the words change.
    private let sequence = Atomic<UInt>(0)
    private let file = Atomic<UInt>(0)
    /// The line in the low half, the number of the kind above it, then the descriptor plus one, and a bit that is set if
    /// there is a handler.
    private let details = Atomic<UInt64>(0)
    private let began = Atomic<Int64>(LoopMeter.unknown)

    // On the loop's thread.
    @exclusivity(unchecked) package private(set) var longest: SlowHandler?
    @exclusivity(unchecked) package private(set) var longestTurn: Int64 = 0
    @exclusivity(unchecked) var recording: LoopRecording?
    /// True when a turn has run inside the current handler.
    @exclusivity(unchecked) private var isInterrupted = false
    @exclusivity(unchecked) private var isOwn = false
    @exclusivity(unchecked) package fileprivate(set) var isMeasuring = false

    package init() {}

    /// A handler that is running.
    package struct Running: Hashable, Sendable {
        package let kind: HandlerKind
        package let callSite: CallSite?
        /// The descriptor whose event it is.
        package let descriptor: CInt?
        /// The time at which it began, by the monotonic clock; `nil` if the loop did not read it then.
        package let began: Int64?
        /// Another number for each handler, and for each return to an outer one.
        package let number: UInt
    }

    /// Any thread: the handler that the loop is in; of nested ones, the innermost. `nil` between handlers, and if they
    /// change faster than this thread can read.
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

    /// The state of the sequence lock, to be stored again when a handler ends.
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

    /// - Returns: for `handlerDidEnd`.
    func handlerBegins(_ kind: HandlerKind, _ callSite: CallSite?, _ descriptor: Int, at moment: Int64) -> Words {
        let outer = current
        let place = UInt64(kind.number) << 32 | UInt64(descriptor + 1) << 40
        store(
            Words(
                file: callSite?.fileAddress ?? 0, details: place | UInt64(callSite?.line ?? 0) | 1 << 63,
                began: moment))
        return outer
    }

    func handlerDidEnd(_ outer: Words) { store(outer) }

    /// - Returns: the value before.
    func setInterrupted(_ value: Bool) -> Bool {
        defer { isInterrupted = value }
        return isInterrupted
    }

    func note(_ handler: SlowHandler) {
        if isOwn { return isOwn = false }
        if handler.duration > longest?.duration ?? .zero { longest = handler }
    }

    /// The handler that runs is the observer's own, which is not reported.
    fileprivate func disregardHandler() { isOwn = true }

    func noteTurn(_ time: Int64) { longestTurn = max(longestTurn, time) }

    fileprivate func restart() {
        longest = nil
        longestTurn = 0
    }
}

extension EventLoop {
    /// Begins to show the loop's handlers to `probe`, or changes what it measures. On the loop's thread.
    /// - Parameter isMeasuring: whether the loop reads the clock for each turn and each handler.
    package func show(to probe: LoopProbe?, isMeasuring: Bool = false) {
        assertOwner()
        if let probe, meter.probe === probe, probe.isMeasuring == isMeasuring { return }
        probe?.isMeasuring = isMeasuring
        meter.probe = probe
    }

    /// The handler that runs is the observer's own: it is not among the longest ones. On the loop's thread.
    package func disregardHandler() { meter.probe?.disregardHandler() }

    /// Begins to record in the loop's probe, which must measure, at most `most` slices.
    package func beginRecording(atMost most: Int) {
        meter.probe?.recording = LoopRecording(of: jobs, atMost: most)
    }

    /// Ends the recording, and returns it.
    package func endRecording() -> LoopRecording? { meter.probe?.recording.take() }

    /// The state of the loop for an observer, in constant time; what has been longest begins anew. On the loop's thread.
    package func beat() -> LoopBeat {
        let probe = meter.probe
        probe?.disregardHandler()
        defer { probe?.restart() }
        return LoopBeat(
            metrics: metrics(countingJobs: LoopBeat.mostJobs), nanosecondsWaiting: meter.nanosecondsWaiting,
            longestHandler: probe?.longest, longestTurn: probe?.longestTurn ?? 0,
            nearestTimer: nextDeadline.map { $0.nanoseconds - clock.now.nanoseconds }, moment: clock.now.nanoseconds)
    }
}

/// The numbers that a loop tells an observer several times a second.
package struct LoopBeat: Sendable {
    /// The number to which ready jobs are counted, one by one.
    package static var mostJobs: Int { 10_000 }

    package let metrics: LoopMetrics
    /// The time that the loop has waited, as far as it was measured.
    package let nanosecondsWaiting: Int64
    /// Since the previous beat, if the loop measures.
    package let longestHandler: SlowHandler?
    package let longestTurn: Int64
    /// The time until the first timer is due, in nanoseconds; negative if it is late.
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
