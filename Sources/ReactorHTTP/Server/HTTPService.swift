import Promises
import Reactor
import ReactorIO

/// State shared by a server's sessions: its limits and handler.
// @unchecked: all properties are constants, and the closures are called on the sessions' loops. A group has several
// threads, so `serveHTTP(on:)` takes only `Sendable` closures.
@usableFromInline
final class HTTPService: @unchecked Sendable {
    let options: HTTPOptions
    /// True when the options have a `transform`. Testing the closure itself would retain it.
    let transforms: Bool
    let timeouts: FrameTimeouts
    let onError: ((any Error, Connection) -> Void)?
    private let callSite: CallSite
    /// True when nobody receives a conversation's final error.
    let reportsEnds: Bool
    let handler: (Request) throws -> Answer

    /// - Parameter isOfListener: true if the program does not get the conversations' promises.
    @usableFromInline
    init(
        _ options: HTTPOptions, _ onError: ((any Error, Connection) -> Void)?, isOfListener: Bool,
        _ file: StaticString, _ line: UInt, _ handler: @escaping (Request) throws -> Answer
    ) {
        self.options = options
        transforms = options.transform != nil
        timeouts = FrameTimeouts(
            idle: options.idle, frame: options.headTime, message: options.requestTime, minimumRate: options.minimumRate)
        self.onError = onError
        callSite = CallSite(file, line)
        reportsEnds = isOfListener && onError == nil
        self.handler = handler
    }

    func report(_ error: any Error, of request: RequestStorage) {
        guard let onError, let connection = request.connection else { return log(error, request.subject) }
        onError(error, connection)
    }

    /// Logs an error that nothing else receives.
    func log(_ error: any Error, _ subject: String) {
        if !error.isCancelled { conf.log(.handlerFailed(error, request: subject, at: callSite)) }
    }

    /// The callback for `serve`, which filters connection errors for `onError`.
    @usableFromInline
    var onConnectionError: (@Sendable (any Error, Connection) -> Void)? {
        if onError == nil { return nil }
        return { [self] error, connection in
            // An error from a connection filter comes from the handshake here, because sessions withhold later ones.
            if error is SystemError || error is PeerGone, connection.hasEnded(with: error) { return }
            onError?(error, connection)
        }
    }
}
