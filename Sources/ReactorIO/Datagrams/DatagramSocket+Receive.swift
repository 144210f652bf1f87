import Promises
import Reactor
import ReactorLibc

extension DatagramSocket {
    struct Reception {
        let promise: PromiseCore
        let limit: Int
        /// The closure of `forEachPacket`; `nil` for a `receive`, which returns an array.
        let body: ((RawSpan, DatagramMetadata) throws -> Void)?
        let onError: ((SystemError) throws -> Void)?
    }

    /// Waits for a datagram, and returns all that have arrived, up to `limit` and at most 32.
    ///
    /// ```swift
    /// socket.receive().done { datagrams in
    ///     for datagram in datagrams { print(datagram.bytes, datagram.address as Any) }
    /// }
    /// ```
    ///
    /// Cancelling the promise leaves later datagrams to the next call. The promise is rejected with a `SystemError`
    /// from recvmmsg(2):
    /// - the error that the kernel reports; the next call can continue if `leavesSocketUsable` is true;
    /// - `EBUSY` if another `receive` or `forEachPacket` is pending;
    /// - `EINVAL` if `limit` is below 1;
    /// - `EBADF` after `close`;
    /// - `ECANCELED` if the socket is closed while the promise is pending.
    ///
    /// - Parameter limit: the maximum number of datagrams; at least 1.
    public func receive(
        upTo limit: Int = 32, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Datagram]> {
        Promise(startReceiving(limit).core.traced(root: "receive", Promise<[Datagram]>.self, file, line))
    }

    /// Calls `body` with each datagram, in the order of arrival, until the socket is closed or `body` throws.
    ///
    /// The bytes are borrowed from the socket's buffer. A turn of the loop delivers at most 32 datagrams. Cancelling
    /// the promise ends the iteration. The next call gets the undelivered datagrams.
    ///
    /// The socket outlives errors for which `SystemError.leavesSocketUsable` is true. Most concern a datagram sent
    /// earlier, like `ECONNREFUSED` on a connected socket without a peer. `onError` gets these errors, and unless it
    /// throws, the iteration continues. Without `onError`, they end the iteration of a connected socket, and are
    /// ignored on a socket with many peers. A shortage of memory is always ignored. After 256 errors within a second
    /// without a success, the socket pauses for 100 ms at a time, reported once per episode as `LogEvent.watchPaused`.
    ///
    /// The promise is rejected with:
    /// - the error that `body` or `onError` throws;
    /// - `SystemError` with `ECANCELED` when the socket is closed;
    /// - the error that makes receiving impossible;
    /// - without `onError`, an error about an earlier datagram on a connected socket; the next call can continue.
    ///
    /// - Parameters:
    ///   - onError: called with each error that the socket outlives.
    ///   - body: called with the bytes of each datagram, valid only during the call, and its other properties.
    /// - Returns: a promise that is never fulfilled, because only an error or a cancellation ends the iteration.
    public func forEachPacket(
        onError: ((SystemError) throws -> Void)? = nil,
        _ body: @escaping (RawSpan, DatagramMetadata) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        Promise(startForEach(body, onError).core.traced(root: "forEachPacket", Promise<Void>.self, file, line))
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
        begin(Reception(promise: core, limit: limit, body: nil, onError: nil))
        return Promise(core)
    }

    private func startForEach(
        _ body: @escaping (RawSpan, DatagramMetadata) throws -> Void, _ onError: ((SystemError) throws -> Void)?
    ) -> Promise<Void> {
        if let refusal = refusal(1) { return Promise(refused: refusal) }
        let core = PromiseCore.pending(Void.self, by: self)
        begin(Reception(promise: core, limit: DatagramBatch.capacity, body: body, onError: onError))
        return Promise(core)
    }

    private func begin(_ reception: Reception) {
        self.reception = reception
        deliverLater()
        updateInterest()
    }

    func receiveNow() {
        // A handler of a send may have turned the loop, received datagrams, and begun another reception.
        guard received.isEmpty, !isDelivering, let reception else { return }
        let count = batch.receive(socket.fd, upTo: reception.limit, loop.kernel)
        if count == -Int(EAGAIN) { return noteSpuriousReadiness(.receiveMessages, count) }
        if count < 0 {
            let error = SystemError(.receiveMessages, CInt(-count), detail: peerAddress?.description)
            if reception.body == nil || !error.leavesSocketUsable { return endReception(error) }
            noteSpuriousReadiness(.receiveMessages, count)
            return report(error)
        }
        successes &+= 1
        received = 0..<count
        deliver()
    }

    private func endReception(_ error: any Error) {
        let promise = reception?.promise
        reception = nil
        promise?.reject(error)
    }

    private func report(_ error: SystemError) {
        guard let reception, ![ENOMEM, ENOBUFS].contains(error.code) else { return }
        if let onError = reception.onError {
            // `onError` may end the reception, begin another, or close the socket.
            do { try onError(error) } catch {
                if self.reception?.promise === reception.promise { endReception(error) }
            }
        } else if reception.body == nil || peerAddress != nil {
            endReception(error)
        }
    }

    func noteRefusal(_ error: SystemError) {
        guard let promise = reception?.promise else { return }
        let reportIt = { [self] in
            guard reception?.promise === promise else { return }
            report(error)
            updateInterest()
        }
        loop.enqueue(InternalJob(reportIt, ifLoopEnds: { [self] in loopWillEnd() }))
    }

    private func deliver() {
        guard !isDelivering, !received.isEmpty, let reception else { return }
        guard let body = reception.body else {
            self.reception = nil
            return reception.promise.fulfill(takePackets(reception.limit))
        }
        isDelivering = true
        // The closure may end the reception, begin another, or close the socket.
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

    /// Delivers the remaining datagrams to another reception. Uses a job, because the previous closure may have begun
    /// that reception. The poller cannot report the loop's end, so the job does.
    private func deliverLater() {
        if received.isEmpty || isDelivering || reception == nil { return }
        let deliverRest = { [self] in
            deliver()
            updateInterest()
        }
        loop.enqueue(InternalJob(deliverRest, ifLoopEnds: { [self] in loopWillEnd() }))
    }
}
