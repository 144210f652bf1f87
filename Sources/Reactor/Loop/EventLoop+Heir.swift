import CLinux
import Synchronization

// A loop of `withLoop` ends before its thread does. Handlers that still wait for results of other threads never run
// then, but the objects that they captured belong to the thread, which may be using them. The surrounding loop
// therefore releases them on that thread.

extension EventLoop {
    /// Before a loop of `withLoop` ends: names the surrounding loop as the heir, which releases the captures of
    /// handlers that still wait.
    /// - Parameter outer: the surrounding loop of the thread, if there is one.
    /// - Returns: the surrounding loop. If there was none and handlers wait, it is created here.
    func nameHeir(_ outer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        // An heir that ends passes its duty on to its own surrounding loop.
        guard waitingHandlers > 0 || lifecycle.isHeir || ending.needsHeir else { return outer }
        var outer = outer
        if outer == nil {
            clinux_set_current_loop(nil)
            outer = EventLoop.addressOfThisThread
            clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        }
        guard let outer else { return nil }
        let remote = Unmanaged<EventLoop>.fromOpaque(outer)._withUnsafeGuaranteedRef { loop in
            loop.lifecycle.isHeir = true
            return loop.remote
        }
        _ = shared.work.heir.storeIfNil(remote)
        return outer
    }

    /// Before a loop without an heir ends, with its thread: tasks that are bound to the thread continue on the thread for
    /// ended loops, which therefore also releases what handlers captured.
    func nameThreadForEndedLoopsIfNeeded() {
        guard ending.needsHeir || lifecycle.isHeir, shared.work.heir.load() == nil else { return }
        shared.work.isContinuedElsewhere.store(true, ordering: .relaxed)
    }

    /// Any thread whose job this loop refused because it had ended: whether another thread continues what uses the
    /// objects that belong to the loop's thread, and is to release them. That is the loop's thread, if it lives on, or
    /// the thread for ended loops.
    package var isInheritedElsewhere: Bool {
        // The loop has decided this before it closed the mailbox; see `Mailbox.post`.
        let last = lastHeir
        // Once the thread has ended, a new one may have its identifier.
        if last.shared.work.isContinuedElsewhere.load(ordering: .relaxed) && last.shared.lifecycle.isOver.isOpen {
            return true
        }
        if isOwnedByThisThread { return false }
        return last !== self || last.shared.work.isContinuedElsewhere.load(ordering: .relaxed)
    }

    /// The outermost of the loops that inherit from this one, or this loop itself.
    private var lastHeir: EventLoop {
        var last = self
        while let heir = last.shared.work.heir.load() { last = heir.loop }
        return last
    }

    /// Any thread that knows that this loop has ended: the surrounding loop. It may have ended too.
    var heir: Remote? {
        // As in `isInheritedElsewhere`.
        atomicMemoryFence(ordering: .acquiring)
        return shared.work.heir.load()
    }

    /// Any thread: releases `object` on this loop's thread, by the first surrounding loop that has not ended. If there
    /// is none, releases it on the thread for ended loops if tasks of this thread continue there, and on the calling
    /// thread otherwise.
    /// - Parameter object: must be the only reference to the object; this takes it over.
    package func releaseOnOwnThread(_ object: Unmanaged<AnyObject>) {
        let job = Unmanaged<Job>.passRetained(ReleaseJob(object))
        var last = self
        while let heir = last.shared.work.heir.load() {
            if heir.loop.post(job) { return }
            last = heir.loop
        }
        guard last.shared.work.isContinuedElsewhere.load(ordering: .relaxed) else { return job.release() }
        last.runOnThreadForEndedLoops(job)
    }
}

/// Releases an object when it runs, or when its loop ends.
private final class ReleaseJob: Job {
    // Owned. Unmanaged, so that no thread through which it passes releases a reference of its own last.
    private var object: Unmanaged<AnyObject>?

    init(_ object: Unmanaged<AnyObject>) {
        self.object = object
        super.init()
    }

    deinit { object?.release() }

    override func run() { object.take()?.release() }

    override var isReportedUndelivered: Bool { false }
}
