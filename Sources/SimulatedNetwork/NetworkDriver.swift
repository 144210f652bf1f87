import Glibc
import Reactor

/// Turns the loops of all hosts on one thread, in virtual time.
///
/// The loop that a `hang` drives asks the driver before it waits or lets its clock jump. The driver then turns every
/// other loop that has work, in a random order, until none has. The next event after that, a packet or another host's
/// timer, becomes a timer of the asking loop, whose clock jumps there: all loops share it.
final class NetworkDriver {
    private unowned let network: VirtualNetwork
    private var hosts: [SimulatedHost] = []
    private var hooks: [ObjectIdentifier: EventLoop.Watch] = [:]
    private var timers: [ObjectIdentifier: (timer: EventLoop.Timer, moment: Int64)] = [:]
    private var isEnded = false
    /// The number of turns since time has passed or a system call has moved something.
    private var idleTurns = 0
    private var lastProgress: (moment: Int64, moves: Int) = (0, 0)

    init(_ network: VirtualNetwork) { self.network = network }

    func add(_ host: SimulatedHost) {
        hosts.append(host)
        let loop = host.loop
        hooks[ObjectIdentifier(loop)] = loop.beforeWaiting { [unowned self, unowned loop] in turnOthers(than: loop) }
    }

    func remove(_ host: SimulatedHost) {
        hosts.removeAll { $0 === host }
        let key = ObjectIdentifier(host.loop)
        hooks.removeValue(forKey: key)?.cancel()
        timers.removeValue(forKey: key)?.timer.cancel()
    }

    func end() {
        isEnded = true
        for host in hosts { remove(host) }
    }

    private func turnOthers(than asking: EventLoop) {
        if isEnded { return }
        while true {
            network.kernel.runDueEvents()
            var busy = hosts.filter { $0.loop !== asking && hasWork($0) }
            if busy.isEmpty {
                guard !isReady(asking), waitsForThreads(than: asking) else { break }
                continue
            }
            network.kernel.random.shuffle(&busy)
            for host in busy where host.isUp && !isPaused(host) {
                // A loop that cannot turn, because of its end or its depth, reports that to its own driver.
                try? host.loop.turn(.poll)
                noteTurn(of: host.name)
            }
        }
        // A packet has arrived since the loop last polled: a job makes it poll again before its clock jumps.
        if isReady(asking) && !asking.isReady {
            asking.enqueue {}
            noteTurn(of: "that hangs")
        }
        arm(asking)
    }

    /// A loop that spins would keep the test from ever ending: nothing else happens on this thread.
    private func noteTurn(of host: String) {
        let progress = (network.kernel.now, network.kernel.moves)
        if progress != lastProgress { (lastProgress, idleTurns) = (progress, 0) }
        idleTurns += 1
        if idleTurns < 1_000_000 { return }
        fatalError(
            "the host \(host) spins: a million turns without a packet; SIMULATION_SEED=\(network.seed) repeats it")
    }

    private func isPaused(_ host: SimulatedHost) -> Bool { host.pausedUntil > network.kernel.now }

    private func hasWork(_ host: SimulatedHost) -> Bool {
        guard !isPaused(host) else { return false }
        if host.loop.isReady || host.process.isReady { return true }
        guard let deadline = host.loop.nextDeadline else { return false }
        return deadline.nanoseconds <= network.kernel.now
    }

    private func isReady(_ loop: EventLoop) -> Bool {
        loop.isReady || hosts.contains { $0.loop === loop && $0.process.isReady }
    }

    /// Waits for pool threads that work for a host, which takes no simulated time.
    /// - Returns: whether one may have work now.
    private func waitsForThreads(than asking: EventLoop) -> Bool {
        let waiting = hosts.filter { $0.loop !== asking && !isPaused($0) && $0.loop.awaitsThreads }
        if waiting.isEmpty { return false }
        while !waiting.contains(where: { $0.loop.isReady || !$0.loop.awaitsThreads }) && !asking.isReady {
            sched_yield()
        }
        return !asking.isReady
    }

    /// Makes the clock jump no further than to the next event elsewhere.
    private func arm(_ asking: EventLoop) {
        var next = network.kernel.nextEvent ?? .max
        for host in hosts where host.loop !== asking {
            guard let deadline = host.loop.nextDeadline?.nanoseconds else { continue }
            next = min(next, max(deadline, host.pausedUntil))
        }
        for host in hosts where host.pausedUntil > network.kernel.now { next = min(next, host.pausedUntil) }
        let key = ObjectIdentifier(asking)
        if let armed = timers[key] {
            if armed.moment == next && armed.timer.isActive { return }
            timers[key] = nil
            armed.timer.cancel()
        }
        guard next != .max else { return }
        // Goes on at once: a loop without a timer looks as if it waited for another thread.
        let timer = asking.schedule(at: LoopInstant(nanoseconds: next)) { [unowned self, unowned asking] in
            turnOthers(than: asking)
        }
        timers[key] = (timer, next)
    }
}
