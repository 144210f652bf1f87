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
    @exclusivity(unchecked) var recording: LoopRecording?
    @exclusivity(unchecked) private var isInterrupted = false
    @exclusivity(unchecked) private var isOwn = false
    @exclusivity(unchecked) package internal(set) var isMeasuring = false

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

    func setInterrupted(_ value: Bool) -> Bool {
        defer { isInterrupted = value }
        return isInterrupted
    }

    func note(_ handler: SlowHandler) {
        if isOwn { return isOwn = false }
        if handler.duration > longest?.duration ?? .zero { longest = handler }
    }

    /// Keeps the observer's own handler out of the reports.
    func disregardHandler() { isOwn = true }

    func restart() { longest = nil }
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
