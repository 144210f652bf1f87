import Promises
import Reactor
import ReactorLibc

// Each read has a public function, a function that starts it, and a consumer.

extension Connection {
    /// Waits until the descriptor is readable and reads once: at most `limit` bytes, and never more than 64 KiB.
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
    /// A connection has at most one pending read of any kind. Cancelling a read leaves the input to the next. Fulfilled
    /// with `.failed` and
    /// - the error of recv(2), or of read(2) on a descriptor that is not a socket;
    /// - `EBUSY` if another read is pending;
    /// - `EBADF` after `close` or `abort`, and on a pipe's writer;
    /// - `ECANCELED` if `close` or `abort` is called during the read;
    /// - `EINVAL` if `limit` is below one.
    /// - Parameter limit: at least one.
    /// - Returns: a guarantee of the outcome.
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(readBytes(limit).traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// Reads the next bytes, like `read`.
    ///
    /// ```swift
    /// connection.receive().then { bytes in connection.write(bytes) }
    /// ```
    /// - Parameter limit: the maximum number of bytes; at least one.
    /// - Returns: a promise of the bytes, empty at the end of the stream. Rejected with the `SystemError` that `read`
    ///   would report, or with the error of a failed filter.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> { Promise(readArray(limit).traced(root: "receive", Promise<[UInt8]>.self, file, line)) }

    @usableFromInline
    func readBytes(_ limit: Int) -> PromiseCore {
        if let refusal = refuseRead() { return PromiseCore.fulfilled(ReadOutcome.failed(refusal)) }
        if limit < 1 {
            return PromiseCore.fulfilled(ReadOutcome.failed(SystemError(readCall, EINVAL, detail: "upTo: \(limit)")))
        }
        return InputLoop.read(ByteRead(connection: UnownedReference(self), limit: min(limit, Self.largestPiece)))
    }

    @usableFromInline
    func readArray(_ limit: Int) -> PromiseCore {
        if let refusal = refuseRead() { return PromiseCore(error: reported(refusal)) }
        if limit < 1 { return refusedRead("upTo: \(limit)") }
        return InputLoop.read(ArrayRead(connection: UnownedReference(self), limit: min(limit, Self.largestPiece)))
    }

    @usableFromInline
    func readBytes(exactly count: Int) -> PromiseCore {
        if let refusal = refuseRead() { return PromiseCore(error: refusal) }
        if count < 1 { return refusedRead("exactly: \(count)") }
        return InputLoop.read(ExactRead(connection: UnownedReference(self), count: count))
    }

    func refusedRead(_ detail: String) -> PromiseCore {
        PromiseCore(error: SystemError(readCall, EINVAL, detail: detail))
    }
}

struct ByteRead: InputConsumer {
    let connection: UnownedReference<Connection>
    let limit: Int

    static var form: InputForm { .bytes }
    static var valueAtEnd: ReadOutcome? { .end }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) -> InputStep<ReadOutcome> {
        if !received.isEmpty { return .done(.bytes([UInt8](received))) }
        return connection.borrow { $0.hasInput ? .done(.bytes($0.takeInput(limit))) : .needs(limit) }
    }

    /// Reports a `SystemError`, even if a filter has failed with another error.
    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        if error as? PromiseError == .cancelled { return false }
        let connection = connection.object
        let error = error as? SystemError ?? connection.failure
        core.finish(ReadOutcome.failed(error ?? SystemError(connection.readCall, ECANCELED)))
        return true
    }
}

/// The consumer of `receive`. A `map` of `read` would lose bytes if cancelled in between.
struct ArrayRead: InputConsumer {
    let connection: UnownedReference<Connection>
    let limit: Int

    static var form: InputForm { .array }
    static var valueAtEnd: [UInt8]? { [] }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) -> InputStep<[UInt8]> {
        if !received.isEmpty { return .done([UInt8](received)) }
        return connection.borrow { $0.hasInput ? .done($0.takeInput(limit)) : .needs(limit) }
    }
}

struct ExactRead: InputConsumer {
    let connection: UnownedReference<Connection>
    let count: Int

    static var form: InputForm { .frame }
    static var valueAtEnd: [UInt8]? { nil }
    var expectation: StreamError.Expectation { .bytes(count) }

    func take(_ received: UnsafeRawBufferPointer) -> InputStep<[UInt8]> {
        if received.count == count { return .done([UInt8](received)) }
        return connection.borrow {
            $0.keepInput(received)
            let missing = count - $0.bufferedByteCount
            return missing > 0 ? .needs(missing) : .done($0.takeInput(count))
        }
    }
}
