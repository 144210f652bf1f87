import CLinux
import Synchronization

// A loop of `withLoop` ends before its thread does. Handlers that still wait for promises of other threads then never run,
// but what they captured belongs to the thread, which may be using it. So it is released there: by the loop around.

extension EventLoop {
    /// Before a loop of `withLoop` ends: names the loop around as the one that releases what handlers leave behind.
    /// - Parameter outer: the thread's loop around, if it has one.
    /// - Returns: that loop; made for the purpose if there was none and handlers wait.
    func nameHeir(_ outer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        // What it was to release itself passes on with it.
        guard waitingHandlers > 0 || isHeir else { return outer }
        var outer = outer
        if outer == nil {
            clinux_set_current_loop(nil)
            outer = EventLoop.addressOfThisThread
            clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        }
        guard let outer else { return nil }
        let remote = Unmanaged<EventLoop>.fromOpaque(outer)._withUnsafeGuaranteedRef { loop in
            loop.isHeir = true
            return loop.remote
        }
        _ = heir.storeIfNil(remote)
        return outer
    }

    /// Any thread that this loop, which has ended, has refused a job of: whether the loop's thread is another one, which goes on
    /// and releases what belongs to it.
    package var isInheritedElsewhere: Bool {
        if isOwnedByThisThread { return false }
        // The refusal was a relaxed load of what the loop stored (releasing) after it had named its heir.
        atomicMemoryFence(ordering: .acquiring)
        return heir.load() != nil
    }

    /// Any thread: releases `object` on this loop's thread, by the first loop around that has not ended; on this thread if there
    /// is none.
    package func releaseOnOwnThread(_ object: consuming AnyObject) {
        let job = Unmanaged<Job>.passRetained(ReleaseJob(object))
        var next = heir.load()
        while let heir = next {
            if heir.loop.post(job) { return }
            atomicMemoryFence(ordering: .acquiring)
            next = heir.loop.heir.load()
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
