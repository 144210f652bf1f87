import Libc

/// A signal watch, which is itself the job that calls the handler.
///
/// Invariant: used on the loop's thread only.
final class SignalHandler: Job {
    let signal: CInt
    let callSite: CallSite
    /// `nil` once the watch has ended.
    private var body: (() -> Void)?
    var isReferenced = true
    /// Whether the loop's ready queue contains this job.
    var isQueued = false

    init(signal: CInt, body: @escaping () -> Void, callSite: CallSite) {
        self.signal = signal
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
        let body = body
        body?()
    }

    override var kind: HandlerKind { .signal }
    override var handlerCallSite: CallSite? { callSite }
    // A loop that ends has no use for pending signals.
    override var isReportedUndelivered: Bool { false }
}
