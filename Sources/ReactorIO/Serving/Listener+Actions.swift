import Promises
import Reactor

extension Listener {
    /// Lets `event` change the state, and performs the actions that follow. Code that they call may cause further
    /// events, whose actions are performed before `change` returns to that code.
    func change(_ event: (inout ListenerState) -> Void) {
        event(&state)
        while let action = state.nextAction() { perform(action) }
    }

    /// Stops watching the signals, and returns the pending promise of `serve`, which the caller must settle.
    func takeServing() -> PromiseCore? {
        guard let promise = serving.take() else { return nil }
        signals.take()?.end()
        return promise
    }

    private func perform(_ action: ListenerAction) {
        switch action {
        case .acceptBacklog:
            acceptor.acceptBacklog(for: self)
            change { $0.endBacklog() }
        case .close(let refusal):
            acceptor.close()
            while let promise = waiting.popFirst() { promise.reject(refusal) }
        case .startTimer(let time):
            deadline = loop.schedule(at: time) { [self] in abortDrain() }
        case .drainConnections(let time):
            let rest = loop.now.duration(to: time)
            server?.forEachTracker { $0.drain(within: rest) }
        case .countDelivered:
            server?.noteDelivered()
            change { $0.didCountDelivered() }
        case .endDrain(let result):
            deadline.take()?.cancel()
            server?.endRefused()
            drained.resolve(result)
            if signals != nil { takeServing()?.fulfill(result) }
        case .abortConnections: server?.forEachTracker { $0.abortAll() }
        case .failService(let error): takeServing()?.reject(error)
        case .endService(let result):
            let server = server.take()
            server?.end()
            takeServing()?.fulfill(result)
        }
    }
}
