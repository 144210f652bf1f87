import ReactorLibc

/// A signal watch, which is itself the job that calls the handler. Used on the loop's thread only.
final class SignalHandler: Job {
    let signal: CInt
    let callSite: CallSite
    /// True when calling the closure handles the signal. Otherwise the signal stays unhandled until `noteHandled`.
    private let handles: Bool
    /// `nil` once the watch has ended.
    private var body: (() -> Void)?
    var isReferenced = true
    var isQueued = false

    init(signal: CInt, handles: Bool, body: @escaping () -> Void, callSite: CallSite) {
        self.signal = signal
        self.handles = handles
        self.body = body
        self.callSite = callSite
        super.init()
    }

    /// Releases the closure, even if the job is queued. The list of watches must be consistent.
    func end() {
        let body = body.take()
        withExtendedLifetime(body) {}
    }

    override func run() {
        // A signal that arrives during the handler is reported again.
        isQueued = false
        // In a variable, because the handler may cancel its own watch.
        guard let body else { return }
        if handles { SignalRegistry.noteHandled(signal) }
        body()
    }

    override var kind: HandlerKind { .signal }
    override var handlerCallSite: CallSite? { callSite }
    // The end of the watch passes the signal on.
    override var isReportedUndelivered: Bool { false }
}
