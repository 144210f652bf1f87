import Glibc

// What belongs to a loop may be let go of by another thread: an actor or a task that held a connection ends where it likes. Its
// descriptor and its timers are put in order on the loop's own thread all the same.

extension EventLoop {
    /// Whether the calling thread is this loop's.
    package var isOwnedByThisThread: Bool { EventLoop.owns(self) }

    /// For the `deinit` of what belongs to this loop, on any thread: runs `body` on the loop's thread, at once if that is this
    /// one; later otherwise; and if the loop has ended, on whatever thread comes to know of it.
    ///
    /// What `body` has captured must be nobody else's.
    package func performCleanup(_ body: @escaping () -> Void) {
        if isOwnedByThisThread { return body() }
        let estate = Unmanaged<Job>.passRetained(DeferredCleanup(self, body))
        if !post(estate) { estate.takeRetainedValue().run() }
    }

    /// Forgets and closes a descriptor. On the loop's thread, or on any when the loop has ended.
    package func closeDescriptor(_ fd: CInt) {
        guard isOwnedByThisThread else {
            // Ended: it has forgotten everything.
            _ = Glibc.close(fd)
            return
        }
        forget(fd)
        kernel.close(fd)
    }
}

/// Runs in any case, once.
private final class DeferredCleanup: Job {
    // The loop holds it in turn, until it runs it or ends.
    private let loop: EventLoop
    private var body: (() -> Void)?

    init(_ loop: EventLoop, _ body: @escaping () -> Void) {
        self.loop = loop
        self.body = body
        super.init()
    }

    override func run() { body.take()?() }

    override var isReportedUndelivered: Bool { false }

    override func discardAndRelease() {
        run()
        super.discardAndRelease()
    }
}
