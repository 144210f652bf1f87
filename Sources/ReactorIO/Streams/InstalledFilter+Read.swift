import Promises
import Reactor
import ReactorLibc

// Received bytes on their way through a filter, and from the buffered input to the pending read.

extension InstalledFilter {
    /// The maximum output that belongs to no write, beyond which reading stops.
    private static var ownOutputLimit: Int { 65_536 }
    /// The limit for unread plain bytes, and for output that belongs to no write, while the filter needs input.
    private static var limitWhileInputIsNeeded: Int { 1 << 20 }

    // MARK: What is read

    var pollsForInput: Bool { (connection.reader.isWaiting || readsForItself) && !isBlocked || discards }

    /// True when a close has queued output that needs no input. Input is then dropped, since the peer may take the
    /// output only after it has sent everything.
    private var discards: Bool { connection.lifecycle == .flushing && !needsInput && !sourceHasEnded }

    private var readsForItself: Bool {
        !deferred.isEmpty && isCurrent && !inputHasEnded && connection.failure == nil
    }

    /// True when the filter needs input to continue: during the handshake, and while writes are deferred.
    private var needsInput: Bool { !isReady || !deferred.isEmpty }

    /// True when the connection must not read, because the kernel does not take output that belongs to no write. A
    /// filter that needs input is not blocked: the peer may take the output only after it has sent the input.
    private var isBlocked: Bool {
        ownOutput >= Self.ownOutputLimit && !needsInput
    }

    private var ownOutput: Int { connection.writer.queue?.ownOutput ?? 0 }

    /// The error in place of an endless wait, if any. A program may read only after its write, and a peer only after
    /// its bytes are taken.
    var shortage: SystemError? {
        guard needsInput else { return nil }
        let connection = connection
        let limit = Self.limitWhileInputIsNeeded
        // A pending read of a large frame has requested these bytes.
        let unread = connection.bufferedByteCount
        if unread > limit && (isInHandshake || !connection.reader.isWaiting) {
            let detail = "\(unread) bytes were received that no read has taken, and the filter needs more input"
            return SystemError(connection.readCall, ENOBUFS, detail: detail)
        }
        if ownOutput > limit {
            let detail = "the peer does not read the output of the filter, which needs more input"
            return SystemError(connection.writeCall, ENOBUFS, detail: detail)
        }
        return nil
    }

    // MARK: From the kernel

    func descriptorIsReadable() {
        let connection = connection
        // The filter is turning the loop.
        if isCalling { return connection.noteSpuriousReadiness(connection.readCall) }
        if discards { return discard() }
        guard connection.reader.isWaiting || readsForItself else { return }
        // Borrowed, because its users may turn the loop, which also reads, or close the connection.
        let buffer = connection.loop.borrowScratch()
        let received = connection.receiveOnce(into: buffer)
        if let received, received > 0 {
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<received])
            // Bytes after the end record are ignored.
            if !inputHasEnded { call { try $0.receive(bytes.bytes, &$1) } }
        }
        connection.loop.giveBack(buffer)
        guard let count = received else { return }
        if count <= 0 { sourceDidEnd(count) }
        proceed(isInEvent: true)
        guard count < 0 else { return }
        connection.failWrites()
        if !connection.lifecycle.isOpenOrFailed { connection.release() }
    }

    /// Reads once after a failed send: if the peer's reason has arrived, it rejects the writes.
    /// - Returns: true if anything had arrived.
    func readLastWords() -> Bool {
        let connection = connection
        guard isCurrent, !isCalling, !inputHasEnded, !sourceHasEnded, connection.lifecycle.isOpenOrFailed else {
            return false
        }
        let buffer = connection.loop.borrowScratch()
        defer { connection.loop.giveBack(buffer) }
        let count = connection.callReceive(into: buffer, atMost: .max)
        guard count > 0, connection.didReceive(count) != nil else { return false }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        call { try $0.receive(bytes.bytes, &$1) }
        return true
    }

    private func discard() {
        let count = connection.receiveOnce(into: connection.loop.scratch) ?? 1
        if count <= 0 { sourceHasEnded = true }
        if count < 0 { connection.fail(SystemError(connection.readCall, CInt(-count))) }
    }

    private func sourceDidEnd(_ result: Int) {
        sourceHasEnded = true
        if result < 0 {
            connection.noteFailure(SystemError(connection.readCall, CInt(-result)))
        } else if !inputHasEnded {
            call { try $0.receiveEnd(&$1) }
        }
        inputHasEnded = true
    }

    // MARK: To the read that waits

    /// - Parameter isInEvent: true if the body of a loop may be called here. If false, a job calls it.
    func serveRead(isInEvent: Bool) {
        let connection = connection
        let hasNews = hasNewInput
        hasNewInput = false
        if isInHandshake { return finishHandshake() }
        if inputHasEnded { endInput() }
        if connection.reader.isWaiting && (hasNews && connection.hasInput || inputHasEnded) {
            connection.inputDidArrive(isInEvent: isInEvent)
        }
    }

    func endInput() {
        let connection = connection
        if connection.reader.hasEnded { return }
        connection.reader.end()
        let failure = connection.failure
        PeerWatching.settle(as: failure.map(PeerGone.failed) ?? .ended, halfCloseOnly: failure == nil, at: connection)
    }
}
