import Promises
import Reactor
import ReactorIO

extension LoopRemote {
    /// Calls `body` on the loop. If the loop ends first, the call is not reported as undelivered.
    func run(_ body: @escaping @Sendable () -> Void) { _ = post(InternalJob(body)) }
}

/// A loop as the console knows it: its last answers and how late they came. Accessed on the console's loop.
final class WatchedLoop {
    let serial: Int
    let remote: LoopRemote
    let probe = LoopProbe()
    private(set) var name: String
    /// The kernel's ID.
    private(set) var thread: Int?
    private(set) var asked: Int64?
    private(set) var last: LoopBeat?
    private(set) var isMeasured = false
    /// True when the loop's thread belongs to a pool and does not drive the loop. Such loops are hidden.
    private(set) var isOfPool = false

    private struct Second {
        var lags: [Int64] = []
        var longest: SlowHandler?
        /// Nanoseconds.
        var elapsed: Int64 = 0
        var waited: Int64 = 0
        var turns = 0
        var isMeasured = true
    }

    private var seconds: [Second] = []
    private var current = Second()
    private var began: LoopBeat?
    /// The handler found running, and when it was first found.
    private var found: (handler: LoopProbe.Running, since: Int64)?

    static var kept: Int { 60 }

    init(_ serial: Int, _ remote: LoopRemote) {
        (self.serial, self.remote) = (serial, remote)
        name = "loop \(serial)"
    }

    // MARK: Questions

    struct Answer: Sendable {
        let name: String
        let thread: Int32
        let isOfPool: Bool
        let asked: Int64
        let answered: Int64
        let isMeasured: Bool
        let beat: LoopBeat
    }

    /// Asks the loop, unless it still owes an answer.
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

    struct Current {
        let handler: LoopProbe.Running
        /// Nanoseconds; a lower bound if the loop is not measured.
        let time: Int64
    }

    func current(at now: Int64) -> Current? {
        look(at: now)
        return found.map { Current(handler: $0.handler, time: now - ($0.handler.began ?? $0.since)) }
    }

    /// Returns the age of the unanswered question in nanoseconds, or zero.
    func silence(at now: Int64) -> Int64 { asked.map { now - $0 } ?? 0 }

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

    /// Returns the lags of the last `count` seconds. An unanswered question counts with its age.
    func lags(ofSeconds count: Int, at now: Int64) -> Lags? {
        var lags = current.lags + seconds.suffix(count - 1).flatMap(\.lags)
        if silence(at: now) > 20_000_000 { lags.append(silence(at: now)) }
        return Lags(lags)
    }

    /// Returns each past second's largest lag, oldest first; `nil` for seconds in which nobody looked.
    func curve(at now: Int64) -> [Int64?] {
        var curve = (seconds + (current.lags.isEmpty ? [] : [current])).map { second in
            second.isMeasured ? max(second.lags.max() ?? 0, 0) : nil
        }
        if silence(at: now) > 20_000_000 { curve.append(silence(at: now)) }
        return Array(curve.suffix(Self.kept))
    }

    var longest: SlowHandler? {
        (seconds + [current]).compactMap(\.longest).max { $0.duration < $1.duration }
    }

    /// Turns per second, in the last second or a little more.
    var turnRate: Double? { lastSecond { _ in true }.map { Double($0.turns) * 1e9 / Double($0.elapsed) } }
    /// The share of working time in that time; `nil` if not measured.
    var busy: Double? {
        lastSecond(of: \.isMeasured).map { min(max(1 - Double($0.waited) / Double($0.elapsed), 0), 1) }
    }

    /// Returns the sum of the newest fitting seconds, about one second long.
    private func lastSecond(of fits: (Second) -> Bool) -> Second? {
        var sum = Second()
        for second in [current] + seconds.reversed() where sum.elapsed < 1_000_000_000 {
            guard fits(second) else { break }
            sum.elapsed += second.elapsed
            sum.waited += second.waited
            sum.turns += second.turns
        }
        return sum.elapsed >= 900_000_000 ? sum : nil
    }
}
