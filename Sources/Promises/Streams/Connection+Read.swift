import Glibc
import Reactor

extension Connection {
    /// Reads the next bytes, the peer's end, or a failure. Waits until the descriptor is readable and then reads once,
    /// at most `limit` bytes and never more than 64 KiB.
    ///
    /// A connection has one read at a time, of whatever form. Cancelling a read leaves the input to the next one.
    /// Fulfilled with `.failed` and
    /// - the error of recv(2), or of read(2) at a descriptor that is not a socket;
    /// - `EBUSY` if another read waits;
    /// - `EBADF` after `close` or `abort`, and at a pipe's writer;
    /// - `ECANCELED` if `close` or `abort` is called while the read waits;
    /// - `EINVAL` if `limit` is below one.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of bytes; at least one.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee of the bytes, the end or the failure.
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(startRead(limit).core.traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// Reads the next bytes as `read` does.
    /// - Parameters:
    ///   - limit: the maximum number of bytes; at least one.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the bytes, which are empty at the peer's end. Rejected with the `SystemError` of
    ///   `ReadOutcome.failed`, and with the error of the filter if that has failed.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> {
        if !mayRead { return receiveDiverted(limit, file, line) }
        return beginRead(limit).map("receive", { try $0.bytesOrEnd ?? [] }, file, line)
    }

    // MARK: Starting

    @usableFromInline
    func startRead(_ limit: Int) -> Guarantee<ReadOutcome> {
        if !mayRead, let refusal = refusalOfRead {
            loop.assertOwner()
            return .value(.failed(refusal))
        }
        return beginRead(limit)
    }

    @inline(__always)
    private func beginRead(_ limit: Int) -> Guarantee<ReadOutcome> {
        loop.assertOwner()
        if limit < 1 { return .value(.failed(SystemError(readCall, EINVAL, detail: "upTo: \(limit)"))) }
        if hasInput { return Guarantee(PromiseCore.fulfilled(ReadOutcome.bytes(takeInput(min(limit, 65536))))) }
        if reader.hasEnded { return .value(failure.map(ReadOutcome.failed) ?? .end) }
        let core = PromiseCore.pending { PromiseCore.perform(Follow<ReadOutcome>.self, $0, $1) }
        // A plain core, which the loop can use again. Until `take` the reader has it; `deinit` says why the connection is
        // there meanwhile.
        core.beginProduction(by: self)
        reader.wait(core, for: .bytes(limit: UInt32(min(limit, 65536))))
        sendGathered()
        updateInterest()
        return Guarantee(core)
    }

    @inline(__always)
    private var mayRead: Bool { lifecycle.isOpen && reader.isFree && traits.contains(.reads) }

    /// The error for a read that cannot begin; `nil` if one can.
    @usableFromInline
    var refusalToRead: SystemError? { mayRead ? nil : refusalOfRead }

    @inline(never)
    private var refusalOfRead: SystemError? {
        if lifecycle.isClosed {
            return SystemError(readCall, EBADF, detail: "the connection is closed")
        }
        if !kind.contains(.reads) { return SystemError(readCall, EBADF, detail: "this end of the pipe only writes") }
        // The traits of a connection with a filter are diverted.
        if lifecycle.isOpen && reader.isFree { return nil }
        if cold?.filter?.handshake != nil {
            return SystemError(readCall, EBUSY, detail: "the handshake of the filter has not finished")
        }
        return SystemError(readCall, EBUSY, detail: "another read is waiting")
    }

    @inline(never)
    private func receiveDiverted(_ limit: Int, _ file: StaticString, _ line: UInt) -> Promise<[UInt8]> {
        startRead(limit).map(
            "receive",
            { [self] outcome in
                do throws(SystemError) { return try outcome.bytesOrEnd ?? [] } catch { throw reported(error) }
            }, file, line)
    }

    /// Makes one system call: recv(2), or read(2) if the descriptor is no socket.
    @inline(__always)
    func receive(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int {
        let count = min(limit, buffer.count)
        if traits.contains(.socket) { return loop.receive(fd, buffer.baseAddress!, count) }
        return loop.kernel.read(fd, buffer.baseAddress!, count)
    }

    @inline(__always)
    func noteReceived(_ count: Int) {
        noteActivity()
        bytesReceived += count
    }

    /// Notes the end of the input, or the error, that a read has returned.
    /// - Returns: the promise that waited, if it was not taken before.
    @discardableResult
    func noteEnd(_ result: Int) -> PromiseCore? {
        let waiter = reader.end()
        if result < 0 && failure == nil { noteFailure(SystemError(readCall, CInt(-result))) }
        return waiter?.promise
    }

    func readNow() {
        guard case .waiting(let demand) = reader.state else { return }
        switch demand {
        case .chunk: readChunk()
        case .frame: readForFrame()
        case .bytes(let limit): readBytes(Int(limit))
        }
    }

    @inline(__always)
    private func readBytes(_ limit: Int) {
        if reader.sizeClassOfLastRead > Self.largestCopiedSizeClass { return readIntoArray(limit) }
        let buffer = loop.scratch
        let count = receive(into: buffer, atMost: limit)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        hand(count) { [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
    }

    /// The size class of 4 KiB. For larger reads a copy costs more than an array of which a part may remain unused:
    /// with a copy, an echo of 16 KiB takes 1.17 of the CPU time of the same echo in C, and 1.11 without.
    private static var largestCopiedSizeClass: UInt8 { 12 }

    /// Reads into an array whose size is the power of two above the last read. Bytes that do not fit are read in the
    /// next turn, with more room.
    @inline(never)
    private func readIntoArray(_ limit: Int) {
        let room = min(limit, 1 << reader.sizeClassOfLastRead)
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
            count = receive(into: UnsafeMutableRawBufferPointer(buffer), atMost: room)
            filled = max(count, 0)
        }
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        hand(count) { bytes }
    }

    /// Settles the read that waits with the result of the system call.
    @inline(__always)
    private func hand(_ count: Int, _ bytes: () -> [UInt8]) {
        guard let (promise, _) = reader.takeReference() else { return }
        let outcome: ReadOutcome
        if count > 0 {
            noteReceived(count)
            reader.sizeClassOfLastRead = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
            outcome = .bytes(bytes())
        } else {
            noteEnd(count)
            outcome = failure.map(ReadOutcome.failed) ?? .end
        }
        PromiseCore.fulfill(owned: promise, outcome)
        if count < 0 { failWrites() }
    }

    /// Ends the read that waits; later ones may begin.
    func failRead(_ error: SystemError) {
        if let waiter = reader.take() { reject(waiter, error) }
    }

    /// Ends the read that waits, and reading.
    func endRead(_ error: SystemError) {
        if let waiter = reader.end() { reject(waiter, error) }
    }

    private func reject(_ waiter: ConnectionReader.Waiter, _ error: SystemError) {
        let (promise, demand) = waiter
        switch demand {
        case .bytes: promise.fulfill(ReadOutcome.failed(error))
        case .frame:
            cold?.pendingFrame = nil
            promise.reject(reported(error))
        case .chunk:
            takeStep(promise).chunks.end()
            promise.reject(reported(error))
        }
    }

    /// Ends the read of `promise`, which was cancelled.
    /// - Returns: false if `promise` does not wait for input.
    func withdrawRead(_ promise: PromiseCore) -> Bool {
        guard case .waiting(let demand) = reader.state, reader.promise === promise else { return false }
        _ = reader.take()
        if case .frame = demand {
            cold?.pendingFrame = nil
            endFrameWait()
        }
        updateInterest()
        // Last, since it releases the body, and whatever the body retains.
        if case .chunk = demand { takeStep(promise).chunks.end() }
        cancelHandshake(promise)
        return true
    }

    // MARK: Buffered input

    /// Whether bytes were received that no read has consumed.
    @inline(__always)
    var hasInput: Bool {
        guard let cold else { return false }
        return !cold.input.isEmpty
    }

    /// Consumes at most `count` of the buffered bytes.
    func takeInput(_ count: Int) -> [UInt8] {
        guard let cold else { return [] }
        return cold.input.take(min(count, cold.input.count))
    }

    func dropInput() { cold?.input = InputBuffer() }
}
