/// A call of `Listener.serve`, from its beginning until its last connection has ended. Its promise may settle before.
///
/// Accessed only on the loop's thread.
final class Service {
    let server: any ConnectionServer
    let options: ServeOptions
    /// Begins to serve an accepted socket, on this loop or on another.
    let start: (Accepted) -> Void
    let signals: StopSignals?
    /// Until it settles.
    private(set) var promise: PromiseCore?

    init(
        _ promise: PromiseCore, _ server: any ConnectionServer, _ options: ServeOptions, _ signals: StopSignals?,
        _ start: @escaping (Accepted) -> Void
    ) {
        (self.promise, self.server, self.options) = (promise, server, options)
        (self.signals, self.start) = (signals, start)
        // `StopSignals` watches it.
        promise.annotate(.isHandedOutAgain)
    }

    var isBelowLimit: Bool { server.open.active < options.maxConnections }

    /// Ends the watch of the signals.
    /// - Returns: the promise, which the caller settles, unless it has settled.
    func finish() -> PromiseCore? {
        guard let promise = promise.take() else { return nil }
        signals?.end()
        return promise
    }
}
