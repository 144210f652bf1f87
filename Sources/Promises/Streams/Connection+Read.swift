import Glibc
import Reactor

extension Connection {
    /// What comes next: bytes, the peer's end, or a failure. Waits until there is something to read, then reads once,
    /// at most `limit` bytes and never more than 64 KiB.
    ///
    /// Cancelling it leaves what comes to the next read. One read at a time, of whatever form: a second one that comes
    /// while the first waits fails with `EBUSY`. After `close` or `abort` a read fails with `EBADF`, one that was
    /// waiting with `ECANCELED`; at a pipe's writer with `EBADF`. See recv(2), and read(2) for what is no socket.
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(startRead(limit).core.traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// The next bytes; at the peer's end none, that is, an empty array. Rejected with the `SystemError` that `read`
    /// would report.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> { startRead(limit).map("receive", { try $0.bytesOrEnd ?? [] }, file, line) }

    // MARK: What becomes of them

    @usableFromInline
    func startRead(_ limit: Int) -> Guarantee<ReadOutcome> {
        loop.assertOwner()
        guard mayRead else { return .value(.failed(refusalOfRead)) }
        if limit < 1 { return .value(.failed(SystemError(readCall, EINVAL, detail: "upTo: \(limit)"))) }
        if hasInput { return .value(.bytes(takeInput(min(limit, 65536)))) }
        if reader.hasEnded { return .value(failure.map(ReadOutcome.failed) ?? .end) }
        let core = IOPromise(ReadOutcome.self, self)
        reader.wait(core, for: .bytes(limit: UInt32(min(limit, 65536))))
        sendGathered()
        updateInterest()
        return Guarantee(core)
    }

    @inline(__always)
    private var mayRead: Bool { lifecycle.isOpen && reader.isFree && traits.contains(.reads) }

    /// Why no read can begin; `nil` if one can.
    @usableFromInline
    var refusalToRead: SystemError? { mayRead ? nil : refusalOfRead }

    private var refusalOfRead: SystemError {
        if lifecycle.isClosed {
            return SystemError(readCall, EBADF, detail: "the connection is closed")
        }
        if !traits.contains(.reads) { return SystemError(readCall, EBADF, detail: "this end of the pipe only writes") }
        return SystemError(readCall, EBUSY, detail: "another read is waiting")
    }

    /// One call, of whichever kind.
    @inline(__always)
    func receive(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int {
        let count = min(limit, buffer.count)
        if traits.contains(.socket) { return loop.kernel.receive(fd, buffer.baseAddress!, count) }
        return loop.kernel.read(fd, buffer.baseAddress!, count)
    }

    @inline(__always)
    func noteReceived(_ count: Int) {
        noteActivity()
        bytesReceived += count
    }

    /// A read has brought the end, or an error.
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
        if reader.sizeClassOfLastRead > Self.bitsOfLittle { return readMuch(limit) }
        let buffer = loop.scratch
        let count = receive(into: buffer, atMost: limit)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        hand(count) { [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
    }

    /// Above that, 4 KiB, a copy costs more than memory of which a part may remain unused (16 KiB echoed: 1.17 of the
    /// floor's CPU time with it, 1.11 without).
    private static var bitsOfLittle: UInt8 { 12 }

    /// Right into an array, as large as the last read lets expect: the next power of two. What does not fit is read in the
    /// next turn, with more room.
    @inline(never)
    private func readMuch(_ limit: Int) {
        let room = min(limit, 1 << reader.sizeClassOfLastRead)
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
            count = receive(into: UnsafeMutableRawBufferPointer(buffer), atMost: room)
            filled = max(count, 0)
        }
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        hand(count) { bytes }
    }

    /// Settles a read with what the kernel has answered.
    @inline(__always)
    private func hand(_ count: Int, _ bytes: () -> [UInt8]) {
        guard let (promise, _) = reader.take() else { return }
        let outcome: ReadOutcome
        if count > 0 {
            noteReceived(count)
            reader.sizeClassOfLastRead = UInt8(truncatingIfNeeded: Int.bitWidth - count.leadingZeroBitCount)
            outcome = .bytes(bytes())
        } else {
            noteEnd(count)
            outcome = failure.map(ReadOutcome.failed) ?? .end
        }
        promise.fulfill(outcome)
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
            promise.reject(error)
        case .chunk:
            takeStep(promise).chunks.end()
            promise.reject(error)
        }
    }

    /// A read was cancelled. False if `promise` is none that waits.
    func withdrawRead(_ promise: PromiseCore) -> Bool {
        guard case .waiting(let demand) = reader.state, reader.promise === promise else { return false }
        _ = reader.take()
        if case .frame = demand { cold?.pendingFrame = nil }
        updateInterest()
        // Last, since it releases the body, and whatever the body retains.
        if case .chunk = demand { takeStep(promise).chunks.end() }
        return true
    }

    // MARK: What is kept

    /// Whether bytes were read and not asked for.
    @inline(__always)
    var hasInput: Bool {
        guard let cold else { return false }
        return !cold.input.isEmpty
    }

    /// At most so many of the bytes that were read and not asked for.
    func takeInput(_ count: Int) -> [UInt8] {
        guard let cold else { return [] }
        return cold.input.take(min(count, cold.input.count))
    }

    func dropInput() { cold?.input = InputBuffer() }
}
