import Reactor

/// What a listener keeps with a connection that it serves: the handler that may have to be cancelled, the progress of a drain.
/// Made for the first of them, since most connections have none.
final class ServedConnection: ConnectionAttachment {
    private enum Handler {
        /// An async one, until the connection has ended.
        case task(HandlerTask)
        /// The promise of one that is cancelled when its peer has gone, until the connection has ended.
        case work(PromiseCore)
    }

    private var handler: Handler?
    private var task: HandlerTask? { if case .task(let task) = handler { task } else { nil } }
    /// What the connection watches for while the handler neither reads nor writes.
    private(set) var restingInterest: Interest = []
    /// Present while the listener is drained.
    // `@exclusivity(unchecked)`: one thread, and no user code is called during an access; each request reads it.
    @exclusivity(unchecked) var drain: Drain?

    /// What a drain knows of a connection. A class: in a struct, each request would look for it beside a weak reference.
    final class Drain {
        private(set) weak var tracker: ConnectionTracker?
        /// The number of bytes that the connection has received, and since when it has received no more.
        var received: (count: Int, since: LoopInstant)
        /// Whether the loop over frames that has waited ends instead of waiting again.
        var endsFrameLoop = false
        /// Whether a loop was ended, so that the handler is to finish.
        var hasEndedLoop = false

        init(by tracker: ConnectionTracker, received: (count: Int, since: LoopInstant)) {
            self.tracker = tracker
            self.received = received
        }
    }

    /// That of a connection that a listener serves; made by the first access.
    static func of(_ connection: Connection) -> ServedConnection {
        if let served = connection.cold?.attachment as? ServedConnection { return served }
        let made = ServedConnection()
        connection.ensuredColdState.attachment = made
        return made
    }

    func begin(_ task: HandlerTask, cancelsWhenPeerGone: Bool) {
        handler = .task(task)
        restingInterest = cancelsWhenPeerGone ? .peerGone : [.error, .hangUp]
    }

    /// Cancels `work`, the promise of a handler, when the peer has gone.
    func begin(cancelling work: PromiseCore) {
        handler = .work(work)
        restingInterest = .peerGone
    }

    // MARK: Events

    var endsWithPeer: Bool { false }
    var isDraining: Bool { drain != nil }
    var endsFrameLoop: Bool {
        get { drain?.endsFrameLoop == true }
        set {
            drain?.endsFrameLoop = newValue
            if newValue { drain?.hasEndedLoop = true }
        }
    }

    func connectionMayBeIdle(_ connection: Connection) {
        if drain == nil { return }
        // After the handler that runs now.
        connection.loop.enqueue(InternalJob { [self] in drain?.tracker?.endIfAnswered(connection) })
    }

    func connectionDidFail(_ error: SystemError) { cancelHandler(with: error) }

    func peerDidEnd(bothSides: Bool) {
        let cancels = restingInterest.contains(.readHangUp)
        if bothSides { restingInterest = [] } else { restingInterest.remove(.readHangUp) }
        if cancels { cancelHandler(with: PeerGone.ended) }
    }

    private func cancelHandler(with error: any Error) {
        switch handler {
        case .task(let task): task.clientDidFail(error)
        case .work(let work):
            handler = nil
            work.cancel(with: error)
        case nil: break
        }
    }

    func peerDidGo() {}
    func connectionWillClose() { task?.connectionWillClose() }
    func connectionWasAborted() { task?.connectionWasAborted() }

    func connectionDidEnd(_ end: ConnectionEnd) {
        task?.connectionDidEnd(end)
        if case .work = handler { handler = nil }
    }
}
