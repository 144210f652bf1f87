import Reactor

/// Identifies events that are counted together: the same kind, line, error type and, for kernel errors, code.
struct LogKey: Hashable, Sendable {
    let kind: LogEvent.Kind
    let callSite: CallSite?
    private let errorType: ObjectIdentifier?
    private let errorCode: CInt?

    init(_ kind: LogEvent.Kind, at callSite: CallSite? = nil, _ error: (any Error)? = nil) {
        self.kind = kind
        self.callSite = callSite
        errorType = error.map { ObjectIdentifier(type(of: $0)) }
        errorCode = (error as? SystemError)?.code
    }
}

extension LogEvent {
    var key: LogKey {
        switch self {
        case .abandoned(let promise): LogKey(.abandoned, at: promise.bestCallSite)
        case .unhandledRejection(let error, let promise): LogKey(.unhandledRejection, at: promise.bestCallSite, error)
        case .cauterized(let error, let promise): LogKey(.cauterized, at: promise.bestCallSite, error)
        case .handlerFailed(let error, _, let callSite): LogKey(.handlerFailed, at: callSite, error)
        case .undeliveredHandlers: LogKey(.undeliveredHandlers)
        case .loopLeftHandlers(_, let callSite): LogKey(.loopLeftHandlers, at: callSite)
        case .hangStalled(_, let callSite): LogKey(.hangStalled, at: callSite)
        case .hangDeadlock(_, let callSite): LogKey(.hangDeadlock, at: callSite)
        case .hangNested(_, let callSite): LogKey(.hangNested, at: callSite)
        case .acceptPaused(let error): LogKey(.acceptPaused, error)
        case .watchPaused(let error): LogKey(.watchPaused, error)
        case .threadShortage(let error): LogKey(.threadShortage, error)
        case .staleWatch(_, let callSite): LogKey(.staleWatch, at: callSite)
        case .slowHandler(let handler, _): LogKey(.slowHandler, at: handler.callSite)
        case .taskOnEndedLoop: LogKey(.taskOnEndedLoop)
        case .loopNotRunning(let callSite): LogKey(.loopNotRunning, at: callSite)
        case .awaitStalled(let promise, let error): LogKey(.awaitStalled, at: promise.bestCallSite, error)
        case .loopFailed(_, let error): LogKey(.loopFailed, error)
        case .suppressed(_, _, let callSite): LogKey(.suppressed, at: callSite)
        }
    }
}

extension Provenance {
    /// The most specific line: the last step of the trace, the creation, or the `cauterize`.
    fileprivate var bestCallSite: CallSite? { trace?.steps.last?.callSite ?? callSite ?? cauterizedAt }
}
