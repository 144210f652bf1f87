import ReactorLibc

// The descriptors of a loop, for the layers above.

extension EventLoop {
    /// Sets the interest in `fd`. The poller retains `handler` while the interest is not empty.
    ///
    /// If the kernel has no room for the registration (`ENOMEM`, `ENOSPC`), the loop retries every 100 ms; `handler`
    /// gets no events until it succeeds.
    /// - Throws: `SystemError` of `epoll_ctl` for every other reason, and of the calls that open the loop's own
    ///   descriptors.
    package func setInterest(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // The usual case: the kernel's registration need not change. (Without an epoll descriptor, as after the end,
        // nothing is registered.)
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

    /// As `setInterest`, but also throws when the kernel has no room, and then changes nothing.
    package func register(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) throws(SystemError) {
        // A task may outlive the loop and call this on another thread.
        if hasEnded && !isOwnedByThisThread { throw SystemError(.epollControl, EBADF, detail: "the loop has ended") }
        assertOwner()
        // In a forked child, removing an interest is not refused.
        if !poller.isRegistered(fd, for: interest) && (!isForked || !interest.isEmpty) { try openDescriptors() }
        let before = try poller.setInterest(interest, of: fd, handler: handler, kernel)
        withExtendedLifetime(before) {}
    }

    package func setReferenced(_ isReferenced: Bool, of fd: CInt) { poller.setReferenced(isReferenced, of: fd) }

    /// Forgets `fd`; to be called before `fd` is closed.
    package func forget(_ fd: CInt) {
        // A loop that has ended has forgotten every descriptor, and other threads may release its connections.
        if hasEnded { return }
        assertOwner()
        // In a forked child the registration belongs to the parent and must stay.
        let before = poller.forget(fd, isForked ? nil : kernel)
        if !registrationFailures.isEmpty { forgetFailures(of: fd) }
        withExtendedLifetime(before) {}
    }

    /// The handler that waits for `fd`; `nil` if there is none.
    func handler(of fd: CInt) -> (any ReadinessHandler)? { poller.handler(of: fd) }

    var isForked: Bool { shared.life.isForked }

    // `LoopBuffers` functions, in forms that other modules call without exclusivity checks.

    @inlinable @inline(__always)
    package var scratch: UnsafeMutableRawBufferPointer { buffers.scratch }
    @inlinable @inline(__always)
    package func borrowScratch() -> UnsafeMutableRawBufferPointer { buffers.borrowScratch() }
    @inlinable @inline(__always)
    package func giveBack(_ borrowed: UnsafeMutableRawBufferPointer) { buffers.giveBack(borrowed) }
    /// Passes bytes of the block to the code called next.
    @inlinable @inline(__always)
    package func pass(received bytes: UnsafeRawBufferPointer) { buffers.received = bytes }
    @inlinable @inline(__always)
    package func takeReceived() -> UnsafeRawBufferPointer? { buffers.received.take() }
    package func takeSpareOutput() -> [UInt8] { buffers.takeSpareOutput() }
    package func giveBack(spareOutput bytes: inout [UInt8]) { buffers.giveBack(spareOutput: &bytes) }

    /// One recv(2) on a stream. Code of other modules would retain `kernel` for the call; here it is known to outlive
    /// it.
    @inlinable @inline(__always)
    package func receive(_ fd: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        kernel.receive(fd, buffer, count)
    }

    /// One send(2) on a stream; see `receive`.
    @inlinable @inline(__always)
    package func send(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        kernel.send(fd, buffer, count)
    }

    /// A number that differs from one turn to the next.
    @inlinable @inline(__always)
    package var turnNumber: Int { meter.counters.turns }
}
