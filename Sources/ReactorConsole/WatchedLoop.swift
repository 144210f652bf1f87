import Promises
import Reactor
import ReactorIO

extension LoopRemote {
    /// Calls `body` on the loop. If that ends before, it does not count this among the handlers that have not run.
    func run(_ body: @escaping @Sendable () -> Void) { _ = post(InternalJob(body)) }
}

/// A loop as the console knows it: its last answers, and how late it has been. Accessed on the console's loop.
final class WatchedLoop {
    let serial: Int
    let remote: LoopRemote
    let probe = LoopProbe()
    private(set) var name: String
    /// The kernel's number of its thread.
    private(set) var thread: Int?
    /// The time at which the question was sent that has no answer yet.
    private(set) var asked: Int64?
    private(set) var last: LoopBeat?
    private(set) var isMeasured = false
    /// True when its thread belongs to a pool, and so does not drive it; such a loop is not shown.
    private(set) var isOfPool = false

    /// A second of the past.
    private struct Second {
        var lags: [Int64] = []
        var longest: SlowHandler?
        var longestTurn: Int64 = 0
        /// Nanoseconds, while it was measured.
        var elapsed: Int64 = 0
        var waited: Int64 = 0
        var turns = 0
        var isMeasured = true
    }

    private var seconds: [Second] = []
    private var current = Second()
    private var began: LoopBeat?
    /// The handler that was found running, and when it was first found.
    private var found: (handler: LoopProbe.Running, since: Int64)?

    static var kept: Int { 60 }

    init(_ serial: Int, _ remote: LoopRemote) {
        (self.serial, self.remote) = (serial, remote)
        name = "loop \(serial)"
    }

    // MARK: Questions

    /// A loop's answer to a question.
    struct Answer: Sendable {
        let name: String
        let thread: Int32
        let isOfPool: Bool
        /// The times of the question and of the answer.
        let asked: Int64
        let answered: Int64
        let isMeasured: Bool
        let beat: LoopBeat
    }

    /// Asks the loop, unless a question is open.
    /// - Parameter take: called on the console's loop.
    func ask(measuring isMeasuring: Bool, answer take: @escaping @Sendable (Answer) -> Void) {
        let now = LoopClock.monotonic.now.nanoseconds
        look(at: now)
        guard asked == nil else { return }
        asked = now
        remote.run { [probe] in
            let answered = LoopClock.monotonic.now.nanoseconds
            let loop = EventLoop.ofCurrentThread
            let wasMeasured = probe.isMeasuring
            loop.show(to: probe, isMeasuring: isMeasuring)
            take(
                Answer(
                    name: loop.remote.name ?? (loop.isOfMainThread ? "main" : loop.threadName), thread: loop.thread,
                    isOfPool: loop.isOfPool, asked: now,
                    answered: answered, isMeasured: wasMeasured && isMeasuring, beat: loop.beat()))
        }
    }

    func take(_ answer: Answer) {
        asked = nil
        thread = Int(answer.thread)
        name = answer.name
        isOfPool = answer.isOfPool
        current.lags.append(answer.answered - answer.asked)
        if let longest = answer.beat.longestHandler, longest.duration > current.longest?.duration ?? .zero {
            current.longest = longest
        }
        current.longestTurn = max(current.longestTurn, answer.beat.longestTurn)
        if let last { note(answer, since: last) }
        (last, isMeasured) = (answer.beat, answer.isMeasured)
        guard let began else { return self.began = answer.beat }
        guard answer.beat.moment - began.moment >= 1_000_000_000 else { return }
        self.began = answer.beat
        seconds.append(current)
        if seconds.count > Self.kept { seconds.removeFirst() }
        current = Second()
    }

    private func note(_ answer: Answer, since last: LoopBeat) {
        if answer.isMeasured != current.isMeasured {
            (current.elapsed, current.waited, current.turns) = (0, 0, 0)
            current.isMeasured = answer.isMeasured
        }
        current.elapsed += answer.beat.moment - last.moment
        current.waited += answer.beat.nanosecondsWaiting - last.nanosecondsWaiting
        current.turns += answer.beat.metrics.turns - last.metrics.turns
    }

    private func look(at now: Int64) {
        let running = probe.running
        if running != found?.handler { found = running.map { ($0, now) } }
    }

    // MARK: Reports

    /// The handler that runs now.
    struct Current {
        let handler: LoopProbe.Running
        /// Nanoseconds; a lower bound if the loop does not measure.
        let time: Int64
    }

    func current(at now: Int64) -> Current? {
        look(at: now)
        return found.map { Current(handler: $0.handler, time: now - ($0.handler.began ?? $0.since)) }
    }

    /// For how long the loop has not answered, in nanoseconds.
    func silence(at now: Int64) -> Int64 { asked.map { now - $0 } ?? 0 }

    /// Lags in nanoseconds.
    struct Lags: Sendable {
        let median, p99, most: Int64

        init?(_ lags: [Int64]) {
            guard !lags.isEmpty else { return nil }
            let sorted = lags.sorted()
            median = sorted[sorted.count / 2]
            p99 = sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
            most = sorted.last!
        }
    }

    /// The lags of the last ten seconds, or of the last minute; a question that is open counts with its age.
    func lags(ofSeconds count: Int, at now: Int64) -> Lags? {
        var lags = current.lags + seconds.suffix(count - 1).flatMap(\.lags)
        if silence(at: now) > 20_000_000 { lags.append(silence(at: now)) }
        return Lags(lags)
    }

    /// The largest lag of each of the last seconds, the oldest first.
    func curve(at now: Int64) -> [Int64] {
        var curve = (seconds + (current.lags.isEmpty ? [] : [current])).map { max($0.lags.max() ?? 0, 0) }
        if silence(at: now) > 20_000_000 { curve.append(silence(at: now)) }
        return Array(curve.suffix(Self.kept))
    }

    var longest: SlowHandler? {
        (seconds + [current]).compactMap(\.longest).max { $0.duration < $1.duration }
    }

    /// Turns a second, of the last whole second or of what there is.
    var turnRate: Double? { rated.map { Double($0.turns) * 1e9 / Double($0.elapsed) } }
    /// The share of time for which the loop works; `nil` if it was not measured.
    var busy: Double? {
        rated.flatMap { $0.isMeasured ? min(max(1 - Double($0.waited) / Double($0.elapsed), 0), 1) : nil }
    }

    private var rated: Second? {
        let second = current.elapsed < 200_000_000 ? seconds.last ?? current : current
        return second.elapsed > 0 ? second : nil
    }
}
