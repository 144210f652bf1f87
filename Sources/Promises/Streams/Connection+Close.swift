import Glibc
import Reactor

// The three verbs that end a connection. In a forked child they close the copy of the descriptor and do nothing else: the
// connection goes on in the parent.

extension Connection {
    // MARK: Half of it

    /// Ends this side: the peer reads everything that was queued and then the end; reading goes on. Fulfilled when the
    /// end has been handed to the kernel. Again: the same, and nothing happens. See shutdown(2), SHUT_WR.
    ///
    /// A pipe's writer is closed by it, since that is how a pipe ends. Where one descriptor is both sides and no
    /// socket, as a terminal is, it is rejected with `ENOTSOCK`; at a pipe's reader with `EBADF`.
    @discardableResult
    @inlinable @inline(__always)
    public func shutdownWrite(file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        Promise(startShutdown().core.traced(root: "shutdownWrite", Promise<Void>.self, file, line))
    }

    @usableFromInline
    func startShutdown() -> Promise<Void> {
        if lifecycle == .shutDown { return .value }
        if traits.contains(.socket) && loop.kernel.isForked {
            return refuseShutdown(EPERM, "the connection belongs to the parent process")
        }
        if !lifecycle.isOpen { return refuseShutdown(EBADF, "the connection is closed") }
        if !traits.contains(.writes) { return refuseShutdown(EBADF, "this end of the pipe only reads") }
        if !traits.contains(.socket) && traits.contains(.reads) {
            return refuseShutdown(ENOTSOCK, "one side alone can only be ended at a socket")
        }
        sendGathered()
        if let failure { return Promise(error: failure) }
        if let ending = cold?.ending { return Promise(ending) }
        switch writer.end() {
        case .nothing: return .value
        case .sendEnd:
            sendEnd()
            return .value
        case .waitForQueue:
            let core = PromiseCore(root: Void.self)
            makeColdState.ending = core
            return Promise(core)
        }
    }

    private func refuseShutdown(_ code: CInt, _ detail: String) -> Promise<Void> {
        Promise(error: SystemError(.shutdown, code, detail: detail))
    }

    /// The writer has ended.
    func sendEnd() {
        if traits.contains(.socket) {
            // ENOTCONN: the peer has reset. Whoever reads or writes is told.
            _ = loop.kernel.shutdown(fd, CInt(SHUT_WR))
        } else if lifecycle.isOpen {
            release(as: .shutDown)
        }
        guard let promise = cold?.ending else { return }
        cold?.ending = nil
        promise.fulfill(())
    }

    // MARK: All of it, in order

    /// Delivers what is queued, then the end, and closes. Fulfilled when the descriptor is closed.
    ///
    /// A read that waits fails with `ECANCELED`; later operations fail with `EBADF`. Input that is still coming is read
    /// and thrown away until the peer ends too, since closing a socket with unread input makes the kernel send a reset,
    /// which destroys what the peer has not read yet.
    ///
    /// The peer is reset, and writes that wait are rejected with `ECANCELED`, when one of these limits is reached:
    /// - 30 seconds since the call, whatever the peer does. An answer that may take longer to deliver is waited for before
    ///   the call, or is given its time with `close(linger:)`.
    /// - 5 seconds in which the peer has taken and sent less than 5 KiB together. A few bytes now and then are no progress.
    /// - 1 MiB of input since the call.
    ///
    /// A pipe, which is read by a program of this machine, is closed as soon as all is written; only its reader's taking
    /// nothing for 5 seconds ends that early. Again: the same guarantee of the same end.
    @discardableResult
    @inlinable @inline(__always)
    public func close(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        Guarantee(startClosing(nil).core.traced(root: "close", Guarantee<Void>.self, file, line))
    }

    /// Closes as `close()` does, within `time` from now, at pipes too. Within it the peer need not make progress; the limit
    /// of 1 MiB of input stays.
    ///
    /// Zero, or less, waits for nothing: what the kernel takes at once is sent, and if that was all the connection is
    /// closed in order, unread input or not; otherwise it is aborted. If it is being closed already, the new time replaces
    /// the limits of the first call.
    @discardableResult
    @inlinable @inline(__always)
    public func close(
        linger time: Duration, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        Guarantee(startClosing(time).core.traced(root: "close", Guarantee<Void>.self, file, line))
    }

    @usableFromInline
    func startClosing(_ lingerTime: Duration?) -> Guarantee<Void> {
        loop.assertOwner()
        if lifecycle.hasDescriptor && loop.kernel.isForked {
            // To send, to end or to read away anything is the parent's: this process closes its copy.
            abort()
            return .value
        }
        sendGathered()
        let action = lifecycle.close()
        if action == .nothing { return .value }
        let cold = makeColdState
        if let closing = cold.closing {
            if lingerTime != nil { limitClose(to: lingerTime) }
            return Guarantee(closing)
        }
        let core = PromiseCore(root: Void.self)
        cold.closing = core
        cold.idleTimer?.cancel()
        cancelRead()
        // An inline handler of that read may have aborted it.
        if lifecycle == .flushing {
            if action == .release {
                release()
            } else if writer.isQueued {
                updateInterest()
            } else {
                lingerIfDelivered()
            }
        }
        // An inline handler of that read may have given it a time of its own.
        if lifecycle.hasDescriptor && cold.closingTimer == nil { limitClose(to: lingerTime) }
        return Guarantee(core)
    }

    /// Nothing is queued: if that was waited for, the end is next.
    func lingerIfDelivered() {
        guard lifecycle.deliver() else { return }
        if writer.end() == .sendEnd { sendEnd() }
        if reader.hasEnded || !traits.contains(.socket) { release() } else { discardInput() }
    }

    /// Reads to nobody; ends the connection when the peer has ended.
    func discardInput() {
        guard lifecycle == .lingering, let cold else { return }
        let buffer = loop.scratch
        let count = loop.kernel.receive(fd, buffer.baseAddress!, buffer.count)
        if count == -Int(EAGAIN) {
            noteFutileReadiness(readCall)
            return updateInterest()
        }
        cold.discarded += max(count, 0)
        if count <= 0 { return release() }
        if cold.discarded > Self.closeDiscardLimit { return abort() }
        updateInterest()
    }

    // MARK: At once

    /// Drops everything and resets: the peer's reads fail with `ECONNRESET`, but at a pipe or a Unix socket, which know
    /// no reset: they end. Waiting operations fail with `ECANCELED`.
    public func abort() {
        loop.assertOwner()
        guard lifecycle.hasDescriptor else {
            lifecycle = .closed
            return
        }
        // In a forked child the socket is the parent's too, and refuses that.
        if traits.contains(.tcp) { socket.setResetOnClose() }
        noteFailure(SystemError(writeCall, ECANCELED, detail: "the connection was aborted"))
        failWrites()
        release()
    }

    func cancelRead() {
        if reader.isWaiting {
            failRead(SystemError(readCall, ECANCELED, detail: "the connection was closed"))
        }
    }
}
