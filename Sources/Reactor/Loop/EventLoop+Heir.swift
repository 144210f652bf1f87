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

    /// Any thread whose job this loop refused because it had ended: whether the loop's thread is another one, which
    /// lives on and releases the objects that belong to it.
    package var isInheritedElsewhere: Bool {
        if isOwnedByThisThread { return false }
        // The loop has named its heir before it closed the mailbox; see `Mailbox.post`.
        return shared.work.heir.load() != nil
    }

    /// Any thread that knows that this loop has ended: the surrounding loop. It may have ended too.
    var heir: Remote? {
        // As in `isInheritedElsewhere`.
        atomicMemoryFence(ordering: .acquiring)
        return shared.work.heir.load()
    }

    /// Any thread: releases `object` on this loop's thread, by the first surrounding loop that has not ended. If there
    /// is none, releases it on the calling thread.
    package func releaseOnOwnThread(_ object: consuming AnyObject) {
        let job = Unmanaged<Job>.passRetained(ReleaseJob(object))
        var next = shared.work.heir.load()
        while let heir = next {
            if heir.loop.post(job) { return }
            next = heir.loop.shared.work.heir.load()
        }
        job.release()
    }
}

/// Releases an object when it runs, or when its loop ends.
private final class ReleaseJob: Job {
    private let object: AnyObject

    init(_ object: AnyObject) {
        self.object = object
        super.init()
    }

    override var isReportedUndelivered: Bool { false }
}
