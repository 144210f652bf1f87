import CLinux
import Synchronization

// A loop of `withLoop` ends before its thread does. Tasks that are bound to the thread, see `ThreadBoundExecutor`, then
// continue on the surrounding loop.

extension EventLoop {
    /// Before a loop of `withLoop` ends: names the surrounding loop as the heir, which runs the jobs of such tasks.
    /// - Parameter outer: the surrounding loop of the thread, if there is one.
    /// - Returns: the surrounding loop. If there was none and tasks may need it, it is created here.
    func nameHeir(_ outer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard ending.needsHeir else { return outer }
        var outer = outer
        if outer == nil {
            clinux_set_current_loop(nil)
            outer = EventLoop.addressOfThisThread
            clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        }
        guard let outer else { return nil }
        let remote = Unmanaged<EventLoop>.fromOpaque(outer)._withUnsafeGuaranteedRef { loop in
            // An heir that ends passes its duty on to its own surrounding loop.
            loop.ending.needsHeir = true
            return loop.remote
        }
        _ = shared.work.heir.storeIfNil(remote)
        return outer
    }

    /// Any thread that knows that this loop has ended: the surrounding loop. It may have ended too.
    var heir: Remote? {
        // The loop has named it before it closed the mailbox; see `Mailbox.post`.
        atomicMemoryFence(ordering: .acquiring)
        return shared.work.heir.load()
    }
}
