import Glibc

// The descriptors of a loop, for the layers above.

extension EventLoop {
    /// Sets what `fd` waits for; the poller holds `handler` while that is not nothing. If the kernel has no room for the
    /// registration (`ENOMEM`, `ENOSPC`), it is repeated every 100 ms until there is, and `handler` waits so long.
    /// - Throws: `SystemError` of `epoll_ctl` for every other reason, and of the calls that open the loop's own descriptors.
    package func setInterest(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // Nearly always the kernel need not hear of it. (Without a descriptor, as after the end, nothing is registered.)
        if poller.isRegistered(fd, for: interest) {
            assertOwner()
            return poller.set(interest.rawValue, Int(fd), handler)
        }
        try registerOrDefer(interest, of: fd, handler: handler)
    }

    @inline(never)
    private func registerOrDefer(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?
    ) throws(SystemError) {
        do throws(SystemError) { try register(interest, of: fd, handler: handler) } catch {
            try deferRegistration(interest, of: fd, handler: handler, error)
        }
    }

    /// As `setInterest`, but reports a lack of room as well, and then changes nothing.
    package func register(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // A task may outlive its loop, on another thread.
        if hasEnded && !isOwnedByThisThread { throw SystemError(.epollControl, EBADF, detail: "the loop has ended") }
        assertOwner()
        // In a forked child giving up what is registered is not refused.
        if !poller.isRegistered(fd, for: interest) && (!isForked || !interest.isEmpty) { try openPoller() }
        try poller.setInterest(interest, of: fd, handler: handler, kernel)
    }

    package func setReferenced(_ isReferenced: Bool, of fd: CInt) { poller.setReferenced(isReferenced, of: fd) }

    /// Before `fd` is closed.
    package func forget(_ fd: CInt) {
        // A loop that has ended has forgotten everything; its connections may be let go by other threads.
        if hasEnded { return }
        assertOwner()
        // In a forked child the registration is the parent's, and must stay.
        poller.forget(fd, isForked ? nil : kernel)
        if retryTimer != nil || !futile.isEmpty { forgetTrouble(of: fd) }
    }

    func isHandler(_ handler: any ReadinessHandler, of fd: CInt) -> Bool { poller.handler(of: fd) === handler }

    var isForked: Bool { forkGeneration != ForkDetector.generation }

    /// 64 KiB into which everything is read before its exact bytes are copied out, so that an idle connection holds
    /// no buffer. Valid until the next call that reads on this loop.
    package var scratch: UnsafeMutableRawBufferPointer {
        if let buffer { return buffer }
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        buffer = fresh
        return fresh
    }

    /// The same for somebody who lends it to foreign code: nobody else reads into it until it is given back.
    package func borrowScratch() -> UnsafeMutableRawBufferPointer {
        let borrowed = scratch
        buffer = nil
        return borrowed
    }

    package func giveBack(_ borrowed: UnsafeMutableRawBufferPointer) {
        // That code may have turned the loop, which has made itself another one then.
        if buffer == nil { buffer = borrowed } else { borrowed.deallocate() }
    }

    /// Tells one turn from the next.
    package var turnNumber: Int { counters.turns }
}
