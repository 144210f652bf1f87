import Reactor
import ReactorLibc

/// The states of a listener, its `serve` and its drain. Each event changes the state and appends actions, which
/// `Listener.change` performs in order. Shares `counts` with the connections.
///
/// ```
///  [accepting] -- close(withBacklog:), drain --> [takingBacklog] -- endBacklog, close, fail --> [closed]
///       |                                                                                         ^  |
///       +------------------------------------- close, fail ---------------------------------------+  |
///                                                                                                    |
///               [drained] <-- the last connection, the deadline, abort -- [draining] <--- drain -----+
/// ```
///
/// Handlers run during `takingBacklog`, so any event may occur in that state.
struct ListenerState {
    private enum Phase: Int { case accepting, takingBacklog, closed, draining, drained }

    private var phase = Phase.accepting
    private(set) var deadline: LoopInstant?
    private var all = 0
    /// The result of an ended drain; zeros until then.
    private(set) var result = DrainResult()
    /// True from the call of `serve` until its last connection has ended.
    private var isServing = false
    private var actions = IndexedQueue<ListenerAction>()
    let counts = ConnectionCounts()
    /// True when a drain leaves the backlog to the next process.
    var leavesBacklog = false

    var isClosed: Bool { phase.rawValue >= Phase.closed.rawValue }
    var isDraining: Bool { phase.rawValue >= Phase.draining.rawValue }

    mutating func nextAction() -> ListenerAction? { actions.isEmpty ? nil : actions.removeFirst() }

    mutating func serve() { isServing = true }

    // MARK: Closing

    mutating func close(withBacklog: Bool = false) {
        if phase == .accepting { takeBacklog(withBacklog) } else if !withBacklog { endBacklog() }
    }

    mutating func fail(_ error: SystemError) {
        if phase == .accepting { phase = .takingBacklog }
        endBacklog(error)
    }

    private mutating func takeBacklog(_ isTaken: Bool) {
        phase = .takingBacklog
        if isTaken && isServing { actions.append(.acceptBacklog) } else { endBacklog() }
    }

    mutating func endBacklog(_ error: SystemError? = nil) {
        guard phase == .takingBacklog else { return }
        phase = .closed
        counts.noteClosed()
        actions.append(.close(error ?? SystemError(.accept, ECANCELED, detail: "the listener was closed")))
        if let error { actions.append(.failService(error)) }
        if let deadline { beginDrain(until: deadline) } else { connectionsDidEnd() }
    }

    // MARK: Draining

    mutating func drain(until deadline: LoopInstant) {
        if self.deadline != nil { return }
        self.deadline = deadline
        if isServing { actions.append(.startTimer(deadline)) }
        if phase == .accepting { takeBacklog(!leavesBacklog) } else if phase == .closed { beginDrain(until: deadline) }
    }

    private mutating func beginDrain(until deadline: LoopInstant) {
        phase = .draining
        all = isServing ? counts.beginDrain() : 0
        if all > 0 { actions.append(.drainConnections(until: deadline)) } else { endDrain() }
        connectionsDidEnd()
    }

    mutating func abort() {
        if deadline != nil { endBacklog() }
        if isDraining { actions.append(.countDelivered) }
    }

    mutating func didCountDelivered() {
        endDrain()
        actions.append(.abortConnections)
    }

    private mutating func endDrain() {
        guard phase == .draining else { return }
        phase = .drained
        if all > 0 { result = counts.result(all) }
        actions.append(.endDrain(result))
    }

    // MARK: Ending

    mutating func connectionsDidEnd() {
        guard isClosed && isServing && counts.isEmpty else { return }
        endDrain()
        endService()
    }

    /// Reports nothing about connections on other loops, which continue.
    mutating func loopWillEnd() {
        let error = SystemError(.accept, ECANCELED, detail: "the loop has ended")
        fail(error)
        if isServing { actions.append(.failService(error)) }
        endDrain()
        if isServing { endService() }
    }

    private mutating func endService() {
        isServing = false
        actions.append(.endService(result))
    }
}

enum ListenerAction {
    /// Accept the backlog, then call `endBacklog`.
    case acceptBacklog
    /// Close the sockets, and reject the waiting calls of `accept`.
    case close(SystemError)
    /// Reject the promise of `serve`, if it is pending.
    case failService(SystemError)
    /// Abort at the deadline.
    case startTimer(LoopInstant)
    /// End the idle connections, now and whenever one becomes idle.
    case drainConnections(until: LoopInstant)
    /// Count the connections that only deliver, then call `didCountDelivered`.
    case countDelivered
    /// Settle the promise of `drain`, and of a `serve` with stop signals, without waiting until the connections are
    /// aborted.
    case endDrain(DrainResult)
    case abortConnections
    /// Settle `serve`'s promise, if pending, and release the server: the last connection has ended, or the loop is
    /// ending.
    case endService(DrainResult)
}
