import Libc
import Reactor

extension DatagramSocket {
    /// The operation that waits for datagrams.
    struct Reception {
        let promise: PromiseCore
        let limit: Int
        /// The closure of `forEachPacket`; `nil` for `receive`, which returns an array.
        let body: ((RawSpan, DatagramMetadata) throws -> Void)?
    }

    /// Waits for a datagram and returns all that have arrived, at most `limit` and never more than 32.
    ///
    /// ```swift
    /// socket.receive().done { datagrams in
    ///     for datagram in datagrams { print(datagram.bytes, datagram.address as Any) }
    /// }
    /// ```
    ///
    /// Cancelling the promise leaves later datagrams to the next call. The promise is rejected with a `SystemError` of
    /// `recvmmsg`:
    /// - the error that the kernel reports, after which the next call can continue;
    /// - `EBUSY` if another `receive` or `forEachPacket` waits;
    /// - `EINVAL` if `limit` is below 1;
    /// - `EBADF` after `close`;
    /// - `ECANCELED` if the socket is closed during the wait.
    ///
    /// See recvmmsg(2).
    /// - Parameter limit: the maximum number of datagrams; at least 1.
    public func receive(
        upTo limit: Int = 32, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Datagram]> {
        Promise(startReceiving(limit).core.traced(root: "receive", Promise<[Datagram]>.self, file, line))
    }

    /// Calls `body` with each datagram, in the order of arrival, until the socket is closed or `body` throws.
    ///
    /// The bytes are borrowed from the socket's buffer for the duration of the call. One turn of the loop delivers at
    /// most 32 datagrams. Cancelling the promise ends the iteration. Datagrams that were received together with the
    /// last delivered one are left to the next call.
    ///
    /// Errors that the kernel reports about datagrams sent earlier, such as `ECONNREFUSED`, are ignored, and so is a
    /// shortage of memory. If an error occurs 256 times within a second without a success in between, the socket pauses
    /// for 100 ms at a time, reported once per episode as `LogEvent.watchPaused`.
    ///
    /// The promise is rejected with:
    /// - the error that `body` throws;
    /// - `SystemError` with `ECANCELED` when the socket is closed;
    /// - the error that makes receiving impossible.
    ///
    /// - Parameter body: called with the bytes of each datagram, which are valid during the call only, and with its
    ///   other properties.
    /// - Returns: a promise that does not succeed: the iteration ends with an error or a cancellation.
    public func forEachPacket(
        _ body: @escaping (RawSpan, DatagramMetadata) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        Promise(startForEach(body).core.traced(root: "forEachPacket", Promise<Void>.self, file, line))
    }

    private func refusal(_ limit: Int) -> SystemError? {
        if isClosed { return SystemError(.receiveMessages, EBADF, detail: "the socket is closed") }
        if limit < 1 { return SystemError(.receiveMessages, EINVAL, detail: "upTo: \(limit)") }
        if reception == nil { return nil }
        return SystemError(.receiveMessages, EBUSY, detail: "another reception is waiting")
    }

    private func startReceiving(_ limit: Int) -> Promise<[Datagram]> {
        if let refusal = refusal(limit) { return Promise(refused: refusal) }
        if !received.isEmpty && !isDelivering { return .value(takePackets(limit)) }
        let core = PromiseCore.pending([Datagram].self, by: self)
        begin(Reception(promise: core, limit: limit, body: nil))
        return Promise(core)
    }

    private func startForEach(_ body: @escaping (RawSpan, DatagramMetadata) throws -> Void) -> Promise<Void> {
        if let refusal = refusal(1) { return Promise(refused: refusal) }
        let core = PromiseCore.pending(Void.self, by: self)
        begin(Reception(promise: core, limit: DatagramBatch.capacity, body: body))
        return Promise(core)
    }

    private func begin(_ reception: Reception) {
        self.reception = reception
        deliverLater()
        updateInterest()
    }

    func receiveNow() {
        // A handler of a send that was ready too may have turned the loop, and so received, and begun another reception.
        guard received.isEmpty, !isDelivering, let reception else { return }
        let count = batch.receive(socket.fd, upTo: reception.limit, loop.kernel)
        if count == -Int(EAGAIN) { return noteSpuriousReadiness(.receiveMessages, count) }
        if count < 0 {
            let error = SystemError(.receiveMessages, CInt(-count), detail: peerAddress?.description)
            if reception.body != nil && !Self.isPersistent(error) {
                return noteSpuriousReadiness(.receiveMessages, count)
            }
            self.reception = nil
            return reception.promise.reject(error)
        }
        successes &+= 1
        received = 0..<count
        deliver()
    }

    /// Whether the error concerns the socket, and not one datagram: the next call would fail too.
    private static func isPersistent(_ error: SystemError) -> Bool {
        [EBADF, EFAULT, EINVAL, ENOTSOCK, ENOTCONN].contains(error.code)
    }

    private func deliver() {
        guard !isDelivering, !received.isEmpty, let reception else { return }
        guard let body = reception.body else {
            self.reception = nil
            return reception.promise.fulfill(takePackets(reception.limit))
        }
        isDelivering = true
        // The body may end the reception, begin another, or close the socket.
        while let index = received.first, self.reception?.promise === reception.promise {
            received.removeFirst()
            do { try body(batch.bytes(index).bytes, origin(index)) } catch {
                guard self.reception?.promise === reception.promise else { break }
                self.reception = nil
                reception.promise.reject(error)
            }
        }
        isDelivering = false
        deliverLater()
    }

    private func origin(_ index: Int) -> DatagramMetadata {
        DatagramMetadata(address: batch.address(index), isTruncated: batch.isTruncated(index))
    }

    private func takePackets(_ limit: Int) -> [Datagram] {
        let taken = received.prefix(limit)
        received.removeFirst(taken.count)
        return taken.map { Datagram([UInt8](batch.bytes($0)), origin($0)) }
    }

    /// Delivers the rest to another reception in a job, since it may have begun inside the previous body. The poller
    /// does not know of it, so the end of the loop reaches the job.
    private func deliverLater() {
        if received.isEmpty || isDelivering || reception == nil { return }
        let deliverRest = { [self] in
            deliver()
            updateInterest()
        }
        loop.enqueue(InternalJob(deliverRest, ifLoopEnds: { [self] in loopWillEnd() }))
    }
}
