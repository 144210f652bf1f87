import ReactorLibc

extension EventLoop {
    /// Sets the interest in `fd`. The poller retains `handler` until the interest is empty.
    ///
    /// If the kernel has no room for the registration (`ENOMEM`, `ENOSPC`), the loop retries every 100 ms, and
    /// `handler` gets no events until then.
    /// - Throws: any other `SystemError` from `epoll_ctl`, or any error from opening the loop's own descriptors.
    package func setInterest(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // Usually the kernel's registration need not change. (Without an epoll descriptor, nothing is registered.)
        if poller.isRegistered(fd, for: interest) {
            assertOwner()
            let before = poller.set(interest.rawValue, Int(fd), handler)
            return withExtendedLifetime(before) {}
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

    /// Like `setInterest`, but throws, with nothing changed, if the kernel has no room.
    package func register(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // A task that outlives the loop may call this on another thread.
        if hasEnded && !isOwnedByThisThread { throw SystemError(.epollControl, EBADF, detail: "the loop has ended") }
        assertOwner()
        // A forked child may still remove an interest.
        if !poller.isRegistered(fd, for: interest) && (!isForked || !interest.isEmpty) { try openDescriptors() }
        let before = try poller.setInterest(interest, of: fd, handler: handler, kernel)
        withExtendedLifetime(before) {}
    }

    package func setReferenced(_ isReferenced: Bool, of fd: CInt) { poller.setReferenced(isReferenced, of: fd) }

    /// Must be called before closing `fd`.
    package func forget(_ fd: CInt) {
        // An ended loop has forgotten every descriptor, and other threads may release its connections.
        if hasEnded { return }
        assertOwner()
        // In a forked child, the registration must stay for the parent.
        let before = poller.forget(fd, isForked ? nil : kernel)
        if !registrationFailures.isEmpty { forgetFailures(of: fd) }
        withExtendedLifetime(before) {}
    }

    func handler(of fd: CInt) -> (any ReadinessHandler)? { poller.handler(of: fd) }

    var isForked: Bool { shared.life.isForked }

    // Access to `LoopBuffers` without exclusivity checks in other modules.

    @inlinable @inline(__always)
    package var scratch: UnsafeMutableRawBufferPointer { buffers.scratch }
    @inlinable @inline(__always)
    package func borrowScratch() -> UnsafeMutableRawBufferPointer { buffers.borrowScratch() }
    @inlinable @inline(__always)
    package func giveBack(_ borrowed: UnsafeMutableRawBufferPointer) { buffers.giveBack(borrowed) }
    /// Passes received bytes to the code called next.
    @inlinable @inline(__always)
    package func pass(received bytes: UnsafeRawBufferPointer) { buffers.received = bytes }
    @inlinable @inline(__always)
    package func takeReceived() -> UnsafeRawBufferPointer? { buffers.received.take() }
    package func takeSpareOutput() -> [UInt8] { buffers.takeSpareOutput() }
    package func giveBack(spareOutput bytes: inout [UInt8]) { buffers.giveBack(spareOutput: &bytes) }

    /// Calls recv(2) once on a stream. Other modules would retain `kernel` for the call.
    @inlinable @inline(__always)
    package func receive(_ fd: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        kernel.receive(fd, buffer, count)
    }

    @inlinable @inline(__always)
    package func send(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        kernel.send(fd, buffer, count)
    }

    /// Changes with each turn.
    @inlinable @inline(__always)
    package var turnNumber: Int { meter.counters.turns }
}
