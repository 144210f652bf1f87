import Reactor

/// Identifies events that are counted together: of one kind and one line, with errors of one type and, for kernel
/// errors, one code.
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
        case .abandoned(let promise): LogKey(kind, at: promise.bestCallSite)
        case .unhandledRejection(let error, let promise), .cauterized(let error, let promise),
            .awaitStalled(let promise, let error):
            LogKey(kind, at: promise.bestCallSite, error)
        case .hangStalled(_, let callSite), .hangDeadlock(_, let callSite), .loopNotRunning(let callSite):
            LogKey(kind, at: callSite)
        case .staleWatch(_, let callSite), .loopLeftHandlers(_, let callSite): LogKey(kind, at: callSite)
        case .acceptPaused(let error), .watchPaused(let error), .loopFailed(_, let error): LogKey(kind, at: nil, error)
        case .slowHandler(let handler, _): LogKey(kind, at: handler.callSite)
        case .undeliveredHandlers, .taskOnEndedLoop: LogKey(kind)
        case .suppressed(_, let kind, let callSite): LogKey(kind ?? .suppressed, at: callSite)
        }
    }
}

extension Provenance {
    /// The most specific line: of the last step of the trace, of the creation, or of the `cauterize`.
    fileprivate var bestCallSite: CallSite? { trace?.steps.last?.callSite ?? callSite ?? cauterizedAt }
}
