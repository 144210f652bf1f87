import Glibc
import Reactor

// Reads. Each form has a type, which requests input and takes what has arrived: `ByteRead`, `ChunkLoop`, `FrameReader`.
// ConnectionReader+Demand.swift handles an event for each.

extension Connection {
    /// Reads the next bytes, the peer's end, or a failure. Waits until the descriptor is readable and then reads once,
    /// at most `limit` bytes and never more than 64 KiB.
    ///
    /// ```swift
    /// connection.read().done { outcome in
    ///     switch outcome {
    ///     case .bytes(let bytes): print("\(bytes.count) bytes")
    ///     case .end: print("the peer has ended")
    ///     case .failed(let error): print(error)
    ///     }
    /// }
    /// ```
    ///
    /// A connection has one read at a time, of any form. Cancelling a read leaves the input to the next one. Fulfilled
    /// with `.failed` and
    /// - the error of recv(2), or of read(2) on a descriptor that is not a socket;
    /// - `EBUSY` if another read is pending;
    /// - `EBADF` after `close` or `abort`, and on a pipe's writer;
    /// - `ECANCELED` if `close` or `abort` is called during the read;
    /// - `EINVAL` if `limit` is below one.
    ///
    /// - Parameter limit: the maximum number of bytes; at least one.
    /// - Returns: a guarantee of the bytes, the end or the failure.
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(ByteRead.start(limit, from: self).core.traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// Reads the next bytes as `read` does.
    ///
    /// ```swift
    /// connection.receive().then { bytes in connection.write(bytes) }
    /// ```
    ///
    /// - Parameter limit: the maximum number of bytes; at least one.
    /// - Returns: a promise of the bytes, which are empty at the peer's end. Rejected with the `SystemError` of
    ///   `ReadOutcome.failed`, and with the error of the filter if that has failed.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> {
        let isDirect = mayRead
        let outcome = ByteRead.start(limit, from: self)
        if isDirect { return outcome.map("receive", { try $0.bytesOrEnd ?? [] }, file, line) }
        return outcome.map(
            "receive",
            { [self] outcome in
                do throws(SystemError) { return try outcome.bytesOrEnd ?? [] } catch { throw reported(error) }
            }, file, line)
    }

    /// The number of received bytes that no read has consumed: the beginning of an incomplete frame, or complete frames
    /// that have not been read yet.
    public var bufferedByteCount: Int { cold?.input.count ?? 0 }

    @inline(__always)
    var hasInput: Bool { cold?.input.isEmpty == false }

    @inlinable @inline(__always)
    var input: ConnectionInput { ConnectionInput(of: self) }

    /// The number of bytes received so far: after the filter, if there is one.
    var deliveredByteCount: Int { layer?.deliveredCount ?? bytesReceived }

    // MARK: Waiting

    /// Makes `core` wait for input, and takes over the caller's reference to it.
    /// - Parameter updatesInterest: false if the caller does, before it calls anything else.
    @inline(__always)
    func requestInput(_ demand: ConnectionReader.Demand, for core: CoreRef, updatesInterest: Bool = true) {
        reader.keep(core, for: demand)
        sendGathered()
        if updatesInterest { updateInterest() }
    }

    @inline(__always)
    private var mayRead: Bool { lifecycle.isOpen && reader.isFree && path == .direct && kind.contains(.reads) }

    /// The error for a read that cannot begin; `nil` if one can.
    @usableFromInline @inline(__always)
    var refusalToRead: SystemError? { mayRead ? nil : refusalOfRead }

    @inline(never)
    private var refusalOfRead: SystemError? {
        if let refusal = refusal(of: readCall, .reads) { return refusal }
        if lifecycle.isOpen && reader.isFree { return nil }
        let isEarly = layer?.isInHandshake == true
        let reason = isEarly ? "the handshake of the filter has not finished" : "another read is waiting"
        return SystemError(readCall, EBUSY, detail: reason)
    }

    // MARK: The descriptor is readable

    /// Reads the descriptor once, and counts what it returns. All input of a connection comes through here.
    /// - Parameter limit: the maximum number of bytes; at least one, since reading none would look like the end.
    /// - Returns: the number of bytes; 0 at the end of the stream, and the negative errno of an error. `nil` if there
    ///   was nothing to read, and nothing else to do.
    @inline(__always)
    func receiveOnce(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int = .max) -> Int? {
        let count = descriptor.receive(into: buffer, atMost: limit)
        if count == -Int(EAGAIN) {
            noteSpuriousReadiness(readCall)
            return nil
        }
        if count > 0 {
            noteActivity()
            bytesReceived += count
        }
        return count
    }

    /// Notes the end of the input, or the error, that a read has returned.
    /// - Returns: the waiting promise, if it has not been taken yet.
    @discardableResult
    func noteEnd(_ result: Int) -> PromiseCore? {
        let waiter = reader.end()
        if result < 0 { noteFailure(SystemError(readCall, CInt(-result))) }
        return waiter?.promise
    }

    // MARK: Failing and cancelling

    /// Ends the pending read and the watches, since this side ends the connection.
    func cancelRead(_ reason: StaticString = "the connection was closed") {
        if let (promise, demand) = reader.take() {
            let isAsked = failure?.isCancellation ?? true
            let error = SystemError(ended: readCall, isCancellation: isAsked, detail: "\(reason)")
            demand.reject(promise, error, at: self)
        }
        PeerWatching.settle(as: nil, at: self)
    }

    /// Ends the pending read, and reading.
    func endRead(_ error: SystemError) {
        if let (promise, demand) = reader.end() { demand.reject(promise, error, at: self) }
    }

    /// Ends the read of `promise`, which was cancelled.
    /// - Returns: false if `promise` does not wait for input.
    func withdrawRead(_ promise: PromiseCore) -> Bool {
        guard case .waiting(let demand) = reader.state, reader.promise === promise else { return false }
        _ = reader.take()
        if case .frame = demand { cold?.frames?.stopWaiting() }
        updateInterest()
        // Last, since it releases the body and its captures.
        if case .chunk = demand { _ = promise.ref.takeChunkStep() }
        (promise as? FrameLoopCore)?.dropLoop()
        layer?.readWasCancelled(promise)
        return true
    }
}
