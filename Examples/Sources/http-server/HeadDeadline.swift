import Reactor

/// The time that a client has for the rest of a head. A head that arrives in one piece, as most do, costs no timer.
final class HeadDeadline {
    private let limit: Duration
    private let expire: () -> Void
    private var timer: EventLoop.Timer?

    /// - Parameter expire: is called when the time is over.
    init(_ limit: Duration, expire: @escaping () -> Void) {
        self.limit = limit
        self.expire = expire
    }

    /// Begins with the first part of a head; further parts gain no time.
    func start() {
        if timer == nil { timer = EventLoop.current.schedule(after: limit) { [self] in expire() } }
    }

    /// Ends with the head, or with the connection.
    func stop() { timer.take()?.cancel() }
}
