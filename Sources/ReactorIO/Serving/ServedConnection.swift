import Promises
import Reactor

/// State that most served connections never need: work to cancel when the connection fails, and the progress of a
/// drain.
final class ServedConnection: ConnectionAttachment {
    private var task: HandlerTask?
    /// The promise of a handler without a task, to cancel when its peer has gone; `nil` at the connection's end.
    private var work: PromiseCore?
    /// Set by a drain. Weak, because the tracker retains its connections.
    weak var tracker: ConnectionTracker?
    var isLeaving = false
    /// The number of received bytes that the drain has seen, and the time when it last changed.
    var received: (count: Int, since: LoopInstant)?

    static func existing(of connection: Connection) -> ServedConnection? {
        connection.cold?.attachment as? ServedConnection
    }

    /// Returns the state, creating it at the first access.
    static func of(_ connection: Connection) -> ServedConnection {
        if let served = existing(of: connection) { return served }
        let made = ServedConnection()
        connection.ensuredColdState.attachment = made
        return made
    }

    func begin(cancelling work: PromiseCore) {
        self.work = work
        restingInterest = .peerGone
    }

    func begin(cancelling task: HandlerTask, whenPeerGone: Bool) {
        self.task = task
        restingInterest = whenPeerGone ? .peerGone : [.error, .hangUp]
    }

    // MARK: Events

    override func connectionMayBeIdle(_ connection: Connection) {
        if drain == nil { return }
        connection.loop.enqueue(InternalJob { [self] in tracker?.endIfAnswered(connection) })
    }

    override func connectionDidFail(_ error: SystemError) { cancelHandler(with: error) }

    override func peerDidEnd(bothSides: Bool) {
        let cancels = restingInterest.contains(.readHangUp)
        if bothSides { restingInterest = [] } else { restingInterest.remove(.readHangUp) }
        if cancels { cancelHandler(with: PeerGone.ended) }
    }

    private func cancelHandler(with error: any Error) {
        if let task { return task.clientDidFail(error) }
        work.take()?.cancel(with: error)
    }

    override func connectionWillClose() { task?.connectionWillClose() }
    override func connectionWasAborted() { task?.connectionWasAborted() }

    override func connectionDidEnd(_ end: ConnectionEnd) {
        // Ends the read loop, so that its handler can finish.
        drain?.resumeLoop()
        // An abort during a close still cancels a task after the connection's end.
        if let task { task.connectionDidEnd(end) } else { work = nil }
    }
}
