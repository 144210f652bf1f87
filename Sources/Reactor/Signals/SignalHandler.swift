import ReactorLibc

/// A signal watch, which is itself the job that calls the handler. Used on the loop's thread only.
final class SignalHandler: Job {
    let signal: CInt
    let callSite: CallSite
    /// True when a call of the closure handles the signal. If false, the closure keeps it until `noteHandled`.
    private let handles: Bool
    /// `nil` once the watch has ended.
    private var body: (() -> Void)?
    var isReferenced = true
    /// True when the ready queue contains this job.
    var isQueued = false

    init(signal: CInt, handles: Bool, body: @escaping () -> Void, callSite: CallSite) {
        self.signal = signal
        self.handles = handles
        self.body = body
        self.callSite = callSite
        super.init()
    }

    /// Releases the closure, even of a queued job. The list of watches must be consistent.
    func end() {
        let body = body.take()
        withExtendedLifetime(body) {}
    }

    override func run() {
        // A signal that arrives during the handler is reported again.
        isQueued = false
        // Named, because the handler may cancel its own watch.
        guard let body else { return }
        if handles { SignalRegistry.noteHandled(signal) }
        body()
    }

    override var kind: HandlerKind { .signal }
    override var handlerCallSite: CallSite? { callSite }
    // The watch's end passes the signal on.
    override var isReportedUndelivered: Bool { false }
}
