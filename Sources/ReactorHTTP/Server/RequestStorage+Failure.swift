import Promises
import Reactor
import ReactorIO

// The answer after a handler's failure.

extension RequestStorage {
    /// True when `error` means that the client has disconnected. A handler gets a `SystemError` of its client's
    /// connection only through the body.
    func hasLeft(with error: any Error) -> Bool {
        (!(error is SystemError) || usedBody?.hasFailed == true) && connection?.hasEnded(with: error) == true
    }

    /// True when `error` comes from reading the body. A handler may ignore a failed body, and fail later for another
    /// reason.
    func isOfBody(_ error: any Error) -> Bool {
        guard usedBody?.hasFailed == true else { return false }
        return error is HTTPError || error is StreamError || error is BodyError
    }

    /// Returns the answer to an `error` from a handler or filter. Reports the program's own errors.
    func failure(_ error: any Error) -> Response {
        if isOfBody(error) { return Response(for: error, asProblem: notes?.parameters != nil) }
        if let error = error as? HTTPError { return Response(for: error, asProblem: notes?.parameters != nil) }
        report(error)
        // Another server's status, for instance, must not become this server's. Time runs out under load.
        let isLate = if case PromiseError.timedOut = error { true } else { false }
        let status = isLate ? Status.serviceUnavailable : .internalServerError
        return Response(for: HTTPError(status), asProblem: notes?.parameters != nil)
    }

    private func report(_ error: any Error) {
        if let service { return service.report(error, of: self) }
        if !error.isCancelled { conf.log(.handlerFailed(error, request: subject, at: nil)) }
    }
}

extension Request {
    /// Returns the answer from `body`, or one for its error. Its promise is rejected only if the client has
    /// disconnected.
    func answer(_ body: () throws -> Answer) -> Answer {
        do {
            let answer = try body()
            guard case .later(let promise) = answer else { return answer }
            return .later(
                promise.recover(policy: .allErrors) { [storage] error in
                    if storage.hasLeft(with: error) { throw error }
                    return .value(storage.failure(error))
                })
        } catch {
            return storage.hasLeft(with: error) ? .later(Promise(error: error)) : .now(storage.failure(error))
        }
    }
}
