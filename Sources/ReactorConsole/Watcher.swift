import Promises
import Reactor
import ReactorIO
import Synchronization

/// Watches the process's loops: once a second, or fifty times a second while somebody looks.
// @unchecked Sendable: accessed only on the console's loop; jobs on other loops pass it back.
final class Watcher: @unchecked Sendable {
    let events = EventRing()
    private(set) var loops: [Int: WatchedLoop] = [:]
    private(set) var findings: [Int: Survey.Findings] = [:]
    private(set) var recording: Recording?
    let started = LoopClock.monotonic.now.nanoseconds
    private let home = EventLoop.current
    private var timer: EventLoop.Timer?
    private var second: EventLoop.Timer?
    private var looksUntil = LoopInstant(nanoseconds: 0)
    private var tracing: EventLoop.Timer?
    private(set) var tracesUntil: LoopInstant?
    private var survey: Guarantee<Void>?
    private var looksSince = LoopInstant(nanoseconds: 0)
    /// Each object's ended uses at a moment, and their rate per second before.
    private var ends: (counts: [String: Int], moment: Int64, perSecond: [String: Double]) = ([:], 0, [:])

    /// The time of close watching after a request.
    private static var attention: Duration { .seconds(10) }
    /// The minimum time of close watching before an answer, because its rates are per second.
    private static var leastLook: Duration { .seconds(1) }

    init() {
        InspectedObjects.second = 1
        conf.observe { [events] event in events.add(event) }
        second = home.schedule(every: .seconds(1)) { [weak self] in self?.everySecond() }
        everySecond()
    }

    func end() {
        timer?.cancel()
        second?.cancel()
        setTracing(for: nil)
        conf.observe(nil)
        InspectedObjects.second = 0
        for loop in loops.values { loop.remote.run { EventLoop.ofCurrentThread.show(to: nil) } }
    }

    var isLooking: Bool { timer != nil }

    /// - Returns: a guarantee, fulfilled when there is enough to show.
    func attend() -> Guarantee<Void> {
        looksUntil = home.now.advanced(by: Self.attention)
        if !isLooking { startLooking() }
        let missing = home.now.duration(to: looksSince.advanced(by: Self.leastLook))
        return missing > .zero ? after(missing) : .value
    }

    private func startLooking() {
        looksSince = home.now
        timer = home.schedule(every: .milliseconds(20)) { [weak self] in self?.ask() }
        ask()
    }

    /// Returns how many uses of each object ended per second since an earlier call, at least a second ago, if there was
    /// one.
    func paces(_ counts: [String: Int], at now: Int64) -> [String: Double] {
        let seconds = Double(now - ends.moment) / 1e9
        guard seconds >= 1 else { return ends.perSecond }
        let paces = counts.compactMap { name, count in ends.counts[name].map { (name, Double(count - $0) / seconds) } }
        ends = (counts, now, Dictionary(uniqueKeysWithValues: paces))
        return ends.perSecond
    }

    private func everySecond() {
        InspectedObjects.second &+= 1
        let living = Dictionary(EventLoop.living.map { ($0.serial, $0.remote) }, uniquingKeysWith: { one, _ in one })
        for (serial, remote) in living where loops[serial] == nil && serial != home.serial {
            loops[serial] = WatchedLoop(serial, remote)
        }
        for serial in loops.keys where living[serial] == nil {
            loops[serial] = nil
            findings[serial] = nil
        }
        if home.now > looksUntil && recording == nil { timer.take()?.cancel() }
        ask()
    }

    private func ask() {
        let isLooking = isLooking
        let home = home.remote
        for loop in loops.values {
            let serial = loop.serial
            loop.ask(measuring: isLooking) { answer in home.run { self.loops[serial]?.take(answer) } }
        }
    }

    // MARK: Surveys

    /// The time after which a loop that has not answered is shown in its last known state.
    private static var patience: Duration { .milliseconds(700) }

    /// Surveys all loops. A survey in progress serves all who ask.
    func look() -> Guarantee<Void> {
        if let survey { return survey.map { $0 } }
        let home = home.remote
        let looks = loops.values.map { loop -> Promise<Void> in
            let (promise, resolver) = Promise<Void>.pending()
            let serial = loop.serial
            let look = Survey { findings in
                home.run {
                    if let findings, self.loops[serial] != nil { self.findings[serial] = findings }
                    resolver.fulfill()
                }
            }
            look.begin(on: loop.remote)
            return promise.timeout(Self.patience).ensure { look.cancel() }
        }
        let all = when(resolved: looks).map { _ in }
        survey = all
        // Also keeps the survey alive: without a listener it would be cancelled, and visitors may leave at any time.
        all.done { [weak self] in self?.survey = nil }
        return all.map { $0 }
    }

    // MARK: Switches

    /// - Parameter time: the time for which to trace; `nil` to stop the console's tracing.
    func setTracing(for time: Duration?) {
        if let time {
            // The program's own tracing continues.
            if conf.trace && tracesUntil == nil { return }
            conf.trace = true
            tracing?.cancel()
            tracesUntil = home.now.advanced(by: time)
            tracing = home.schedule(after: time) { [weak self] in self?.setTracing(for: nil) }
        } else if tracesUntil != nil {
            conf.trace = false
            tracing.take()?.cancel()
            tracesUntil = nil
        }
    }

    /// The seconds left of the console's tracing, if any.
    var tracingLeft: Int? { tracesUntil.map { max(Int(home.now.duration(to: $0).components.seconds), 0) + 1 } }

    /// Records all loops; one recording at a time.
    func record(for time: Duration) -> Promise<String> {
        let made = Recording(Array(loops.values))
        recording = made
        let hadTrace = conf.trace
        if !hadTrace { conf.trace = true }
        let recorded = attend().asPromise().then { made.begin() }.then { after(time) }.then { made.end() }
        return recorded.ensure { [weak self] in
            if !hadTrace && self?.tracesUntil == nil { conf.trace = false }
            self?.recording = nil
            made.abandon()
        }
    }
}
