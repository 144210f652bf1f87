import ReactorLibc
import Reactor

/// Turns all hosts' loops on one thread, in virtual time.
///
/// The loop that a `hang` drives asks the driver before it waits or lets its clock jump. The driver turns every other
/// loop that has work, in random order, until none has any. Then the driver lets the shared clock jump to the next
/// event elsewhere, a packet or another host's timer, until the asking loop has work or its own deadline is next.
///
/// A simulation runs on one thread, and no access to its state calls foreign code. So fields read by each event are not
/// checked for exclusive access, which took a fifth of the time.
final class NetworkDriver {
    private let kernel: SimulatedKernel
    private let seed: UInt64
    @exclusivity(unchecked) private var hosts: [SimulatedHost] = []
    @exclusivity(unchecked) private var isEnded = false
    /// The number of turns since time passed or a system call moved something.
    @exclusivity(unchecked) private var idleTurns = 0
    @exclusivity(unchecked) private var lastProgress: (moment: Int64, moves: Int) = (0, 0)

    init(_ network: VirtualNetwork) {
        kernel = network.kernel
        seed = network.seed
    }

    func add(_ host: SimulatedHost) {
        hosts.append(host)
        host.hook = host.loop.beforeWaiting { [unowned self, unowned host] in turnOthers(for: host, mayJump: true) }
    }

    func remove(_ host: SimulatedHost) {
        hosts.removeAll { $0 === host }
        host.hook?.cancel()
        host.alarm?.cancel()
        (host.hook, host.alarm) = (nil, nil)
    }

    func end() {
        isEnded = true
        for host in hosts { remove(host) }
    }

    /// - Parameter mayJump: true when the asking loop is about to wait.
    private func turnOthers(for asking: SimulatedHost, mayJump: Bool) {
        if isEnded { return }
        asking.alarm?.cancel()
        asking.alarm = nil
        while true {
            kernel.runDueEvents()
            if turnAll(but: asking) { continue }
            if asking.hasEvents { break }
            if waitsForThreads(but: asking) { continue }
            let next = nextMoment(but: asking)
            guard mayJump, next < asking.endOfWait else { break }
            kernel.clock.advance(to: LoopInstant(nanoseconds: next))
        }
        // A packet has arrived since the loop last polled. A job makes it poll again before its clock jumps.
        if asking.hasEvents && !asking.loop.isReady {
            asking.loop.enqueue {}
            noteTurn(of: asking)
        }
        // Without a timer, the loop would seem to wait for another thread.
        let next = nextMoment(but: asking)
        if next == .max || asking.endOfWait != .max { return }
        asking.alarm = asking.loop.schedule(at: LoopInstant(nanoseconds: next)) { [unowned self, unowned asking] in
            turnOthers(for: asking, mayJump: false)
        }
    }

    /// - Returns: true if any loop had work.
    private func turnAll(but asking: SimulatedHost) -> Bool {
        var busy: [SimulatedHost] = []
        for host in hosts where host !== asking && host.hasWork { busy.append(host) }
        if busy.isEmpty { return false }
        kernel.random.shuffle(&busy)
        for host in busy where host.isUp && !host.isPaused {
            // A loop that cannot turn, because it has ended or is nested too deep, reports that to its own driver.
            try? host.loop.turn(.poll)
            noteTurn(of: host)
        }
        return true
    }

    /// Traps if a loop spins, which would keep the test running forever, since nothing else happens on this thread.
    private func noteTurn(of host: SimulatedHost) {
        let progress = (kernel.now, kernel.moves)
        if progress != lastProgress { (lastProgress, idleTurns) = (progress, 0) }
        idleTurns += 1
        if idleTurns < 100_000 { return }
        fatalError(
            "the host \(host.name) spins: 100,000 turns without a packet; SIMULATION_SEED=\(seed) repeats it")
    }

    /// Waits for hosts' pool threads, without passing simulated time.
    /// - Returns: true if a host may have work now.
    private func waitsForThreads(but asking: SimulatedHost) -> Bool {
        let waiting = hosts.filter { $0 !== asking && !$0.isPaused && $0.loop.awaitsThreads }
        if waiting.isEmpty { return false }
        while !waiting.contains(where: { $0.loop.isReady || !$0.loop.awaitsThreads }) && !asking.loop.isReady {
            sched_yield()
        }
        return !asking.loop.isReady
    }

    /// Returns the time of the next event elsewhere, or `.max`.
    private func nextMoment(but asking: SimulatedHost) -> Int64 {
        var next = kernel.nextEvent ?? .max
        for host in hosts {
            if host.isPaused { next = min(next, host.pausedUntil) }
            if host !== asking, let deadline = host.loop.nextDeadline?.nanoseconds {
                next = min(next, max(deadline, host.pausedUntil))
            }
        }
        return next
    }
}
