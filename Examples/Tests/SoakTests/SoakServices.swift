import Promises
import Reactor
import ReactorIO
import SimulatedNetwork

/// What the server of a soak runs: subclasses say in `listen` what that is.
class SoakServices {
    unowned let round: SoakRound
    let host: SimulatedHost
    private(set) var listeners: [Listener] = []
    private(set) var isListening = false
    /// How many handlers run.
    private(set) var running = 0
    /// Timers that servers have begun since the last crash, and end with the loop only.
    var endlessTimers = 0
    /// Counts crashes and drains: what one life has started does not count in the next.
    private(set) var life = 0

    init(_ round: SoakRound) {
        self.round = round
        host = round.server
    }

    /// Binds, adds and serves listeners.
    func listen() throws {}

    final func add(_ listener: Listener) -> Listener {
        listeners.append(listener)
        return listener
    }

    final func counted<Value>(_ work: Promise<Value>) -> Promise<Value> {
        let life = life
        running += 1
        return work.ensure { [self] in if life == self.life { running -= 1 } }
    }

    final func start() {
        host.run {
            do {
                try listen()
                isListening = true
            } catch {
                // By a fault: later.
                close()
                let life = life
                after(.seconds(1)).done { [self] in if self.life == life, listeners.isEmpty { start() } }
            }
        }
    }

    final func close() {
        for listener in listeners { listener.close() }
        endLife(running)
    }

    private func endLife(_ running: Int) { (listeners, isListening, self.running) = ([], false, running) }

    final func crash() {
        if !host.isUp { return }
        life += 1
        host.crash()
        endlessTimers = 0
        round.forgetServersConnections()
        endLife(0)
    }

    final func restart() {
        // It may be up again, after another crash.
        crash()
        host.restart {}
        start()
    }

    /// Drains all listeners.
    /// - Parameter isLast: whether nothing listens afterwards.
    @discardableResult
    final func drain(deadline: Duration, isLast: Bool = false) -> Promise<Void> {
        let (began, life, drained) = (round.network.now, life, listeners)
        return host.run {
            endLife(running)
            let drains = drained.map { $0.drain(deadline: deadline) }
            return when(guarantees: drains).asPromise().done { [self] _ in
                if life != self.life { return }
                round.expectInTime(host, began, deadline, "a drain")
                if !isLast { start() }
            }
        }
    }
}
