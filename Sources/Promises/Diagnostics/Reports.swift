import Reactor

/// The reports that the library makes about a promise.
@usableFromInline
enum Reports {
    static func unhandled(_ error: any Error, _ provenance: @autoclosure () -> Provenance) {
        // An abandoned promise, and one whose loop has ended, has already been reported.
        if error.isCancelled || [.abandoned, .loopEnded].contains(error as? PromiseError) { return }
        conf.log(.unhandledRejection(error, provenance()))
    }

    /// Receives the errors of a server's handlers in place of a missing `onError`.
    static func ofHandlers(_ callSite: CallSite) -> @Sendable (any Error, Connection) -> Void {
        { error, connection in
            if !connection.peerHasCaused(error) { conf.log(.handlerFailed(error, request: nil, at: callSite)) }
        }
    }
}
