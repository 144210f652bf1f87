import ReactorLibc

/// A signal watch, which is itself the job that calls the handler.
///
/// Invariant: used on the loop's thread only.
final class SignalHandler: Job {
    let signal: CInt
    let callSite: CallSite
    /// True when a call of the closure handles the signal. Otherwise the closure only keeps it, until `noteHandled`.
    private let handles: Bool
    /// `nil` once the watch has ended.
    private var body: (() -> Void)?
    var isReferenced = true
    /// Whether the loop's ready queue contains this job.
    var isQueued = false

    init(signal: CInt, handles: Bool, body: @escaping () -> Void, callSite: CallSite) {
        self.signal = signal
        self.handles = handles
        self.body = body
        self.callSite = callSite
        super.init()
    }

    /// Releases the closure, also if the job is queued. Call it when the list of watches is consistent.
    func end() {
        let body = body.take()
        withExtendedLifetime(body) {}
    }

    override func run() {
        // A signal that arrives while the handler runs is reported once more.
        isQueued = false
        // Bound to a name, since the handler may cancel its own watch.
        guard let body else { return }
        if handles { SignalRegistry.noteHandled(signal) }
        body()
    }

    override var kind: HandlerKind { .signal }
    override var handlerCallSite: CallSite? { callSite }
    // The end of the watch passes the signal on.
    override var isReportedUndelivered: Bool { false }
}
