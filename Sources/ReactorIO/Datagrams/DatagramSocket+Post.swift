import Reactor

extension DatagramSocket {
    /// Sends `bytes` as one datagram without a promise, for answers and measurements that nobody waits for.
    ///
    /// ```swift
    /// socket.forEachPacket { bytes, origin in socket.post(answer(to: bytes), to: origin.address) }
    /// ```
    ///
    /// The datagrams of a turn are sent at its end, 32 per system call, or at once if the loop is not being driven.
    /// Posts and sends keep the order of the calls, and `close` sends the posts first. A refused datagram is tried once
    /// more, because the error may belong to an earlier one, like `ECONNREFUSED` on a connected socket. The error is
    /// reported to the waiting `receive` or `forEachPacket`. `lostPosts` counts the datagrams that were not sent.
    /// - Returns: false if it was dropped: 1024 already wait for the kernel, or the socket is closed.
    @discardableResult
    public func post(_ bytes: some Collection<UInt8>, to address: SocketAddress? = nil) -> Bool {
        post(Datagram(bytes, to: address))
    }

    /// Posts a copy of borrowed bytes; see the overload that takes a collection.
    @discardableResult
    public func post(_ span: RawSpan, to address: SocketAddress? = nil) -> Bool {
        post(span.withUnsafeBytes { Datagram($0, to: address) })
    }

    private func post(_ packet: Datagram) -> Bool {
        loop.assertOwner()
        guard !isClosed, waitingPosts < Self.queueLimit else {
            lostPosts += 1
            return false
        }
        if let last = outgoing.indices.last, outgoing[last].promise == nil {
            outgoing[last].packets.append(packet)
        } else {
            outgoing.append(Outgoing(promise: nil, packets: [packet], isCounted: false))
        }
        waitingPosts += 1
        if waitsForRoom { return true }
        if !loop.isBeingDriven || waitingPosts % DatagramBatch.capacity == 0 { sendGathered() } else { sendLater() }
        return true
    }

    private func sendLater() {
        if hasPostJob { return }
        hasPostJob = true
        let send = { [self] in
            hasPostJob = false
            sendGathered()
        }
        // The job retains the socket, as a pending operation does.
        loop.enqueueAtEndOfTurn(InternalJob(send, ifLoopEnds: { [self] in loopWillEnd() }))
    }

    func sendGathered() {
        if outgoing.isEmpty || waitsForRoom || isClosed { return }
        flush()
        updateInterest()
    }

    /// Skips a post that the kernel has refused twice. The first error may belong to an earlier datagram.
    func pass(_ posts: inout Outgoing, _ error: SystemError) {
        if posts.refusal == nil {
            posts.refusal = error
        } else {
            posts.refusal = nil
            posts.sent += 1
            waitingPosts -= 1
            lostPosts += 1
        }
    }
}
