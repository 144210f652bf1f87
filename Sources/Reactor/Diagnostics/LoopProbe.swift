import Synchronization

/// Shows a loop's handlers to an observer on another thread: the running one, the longest, and a recording of all.
///
/// Only a loop that a console watches has a probe. It notes each handler before the call. It reads the clock only with
/// `isMeasuring`, which costs as much as `LoopMetrics.Measured.handlers`.
// @unchecked Sendable: any thread may read the atomics; only the loop's thread accesses the rest.
package final class LoopProbe: @unchecked Sendable {
    // A sequence lock, written by the loop's thread; odd while the words change.
    private let sequence = Atomic<UInt>(0)
    private let file = Atomic<UInt>(0)
    /// The line in the low half, then the kind's number, the descriptor plus one, and a bit that is set for a handler.
    private let details = Atomic<UInt64>(0)
    private let began = Atomic<Int64>(LoopMeter.unknown)

    // Accessed on the loop's thread.
    @exclusivity(unchecked) package private(set) var longest: SlowHandler?
    @exclusivity(unchecked) package private(set) var longestTurn: Int64 = 0
    @exclusivity(unchecked) var recording: LoopRecording?
    @exclusivity(unchecked) private var isInterrupted = false
    @exclusivity(unchecked) private var isOwn = false
    @exclusivity(unchecked) package fileprivate(set) var isMeasuring = false

    package init() {}

    package struct Running: Hashable, Sendable {
        package let kind: HandlerKind
        package let callSite: CallSite?
        package let descriptor: CInt?
        /// The handler's monotonic start time; `nil` if not read.
        package let began: Int64?
        /// A number that changes with each handler, and with each return to an outer handler.
        package let number: UInt
    }

    /// The innermost running handler; `nil` between handlers, or if handlers change faster than this thread reads. Any
    /// thread.
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

    /// The words under the sequence lock, to be restored when a handler ends.
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

    func setInterrupted(_ value: Bool) -> Bool {
        defer { isInterrupted = value }
        return isInterrupted
    }

    func note(_ handler: SlowHandler) {
        if isOwn { return isOwn = false }
        if handler.duration > longest?.duration ?? .zero { longest = handler }
    }

    /// Keeps the observer's own handler out of the reports.
    fileprivate func disregardHandler() { isOwn = true }

    func noteTurn(_ time: Int64) { longestTurn = max(longestTurn, time) }

    fileprivate func restart() {
        longest = nil
        longestTurn = 0
    }
}

extension EventLoop {
    /// Shows the loop's handlers to `probe`, or changes what it measures. Called on the loop's thread.
    /// - Parameter isMeasuring: true to read the clock for each turn and handler.
    package func show(to probe: LoopProbe?, isMeasuring: Bool = false) {
        assertOwner()
        if let probe, meter.probe === probe, probe.isMeasuring == isMeasuring { return }
        probe?.isMeasuring = isMeasuring
        meter.probe = probe
    }

    /// Keeps the observer's own handler out of the longest times. Called on the loop's thread.
    package func disregardHandler() { meter.probe?.disregardHandler() }

    /// Records at most `most` slices in the loop's probe, which must be measuring.
    package func beginRecording(atMost most: Int) {
        meter.probe?.recording = LoopRecording(of: jobs, atMost: most)
    }

    package func endRecording() -> LoopRecording? { meter.probe?.recording.take() }

    /// Returns the loop's state in constant time, and resets the longest times. Called on the loop's thread.
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

/// The numbers that a loop sends to an observer several times a second.
package struct LoopBeat: Sendable {
    /// The limit for the count of ready jobs, which are counted one by one.
    package static var mostJobs: Int { 10_000 }

    package let metrics: LoopMetrics
    package let nanosecondsWaiting: Int64
    /// Since the previous beat, if measured.
    package let longestHandler: SlowHandler?
    package let longestTurn: Int64
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
