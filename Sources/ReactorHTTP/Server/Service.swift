import Promises
import Reactor
import ReactorIO

/// State that the sessions of a server share: its limits, and the handler.
// @unchecked: all properties are constants, and the closures are called on the loops of the sessions. With a group,
// which has several threads, `serveHTTP(on:)` takes only closures that are `Sendable`.
@usableFromInline
final class Service: @unchecked Sendable {
    let options: HTTPOptions
    /// Whether the options have a `transform`: testing the closure itself would count references.
    let transforms: Bool
    let timeouts: FrameTimeouts
    let onError: ((any Error, Connection) -> Void)?
    /// The line of the `serveHTTP`.
    private let callSite: CallSite
    /// True when nobody receives the error with which a conversation ends.
    let reportsEnds: Bool
    let handler: (Request) throws -> Answer

    /// - Parameter isOfListener: whether the program does not get the promises of the conversations.
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

    /// Reports an error of the program.
    func report(_ error: any Error, of request: RequestStorage) {
        guard let onError, let connection = request.connection else { return log(error, request.subject) }
        onError(error, connection)
    }

    /// Reports an error that nobody else receives.
    func log(_ error: any Error, _ subject: String) {
        if !error.isCancelled { conf.log(.handlerFailed(error, request: subject, at: callSite)) }
    }

    /// For `serve`: filters the errors of a connection that `onError` gets.
    @usableFromInline
    var onConnectionError: (@Sendable (any Error, Connection) -> Void)? {
        if onError == nil { return nil }
        return { [self] error, connection in
            // An error of a filter here comes from the handshake: sessions have kept back any later one.
            if error is SystemError || error is PeerGone, connection.hasEnded(with: error) { return }
            onError?(error, connection)
        }
    }
}
