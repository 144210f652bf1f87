import Glibc
import Reactor

/// A read of the next bytes, by `read`.
struct ByteRead: InputConsumer {
    let connection: Uncounted<Connection>
    let limit: Int

    static var form: InputForm { .bytes }
    static var valueAtEnd: ReadOutcome? { .end }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) -> InputStep<ReadOutcome> {
        if !received.isEmpty { return .done(.bytes([UInt8](received))) }
        return takeInput()
    }

    @inline(never)
    private func takeInput() -> InputStep<ReadOutcome> {
        connection.borrow {
            if $0.hasInput { return .done(.bytes($0.takeInput(limit))) }
            return $0.reader.hasEnded ? .done($0.failure.map(ReadOutcome.failed) ?? .end) : .needs(limit)
        }
    }

    /// The outcome has the error of the system also where a filter has another one.
    func recover(from error: any Error, _ core: PromiseCore) -> Bool {
        let connection = connection.object
        let error = error as? SystemError ?? connection.failure
        core.finish(ReadOutcome.failed(error ?? SystemError(connection.readCall, ECANCELED)))
        return true
    }
}

/// A read of the next bytes, by `receive`. Not `read` with a `map`: between the two, a cancellation would lose bytes.
struct ArrayRead: InputConsumer {
    let connection: Uncounted<Connection>
    let limit: Int

    static var form: InputForm { .array }
    static var valueAtEnd: [UInt8]? { [] }

    @inline(__always)
    func take(_ received: UnsafeRawBufferPointer) -> InputStep<[UInt8]> {
        if !received.isEmpty { return .done([UInt8](received)) }
        return connection.borrow { $0.hasInput ? .done($0.takeInput(limit)) : .needs(limit) }
    }
}

/// A read of a number of bytes.
struct ExactRead: InputConsumer {
    let connection: Uncounted<Connection>
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

extension Connection {
    @usableFromInline
    func readBytes(_ limit: Int) -> PromiseCore {
        loop.assertOwner()
        if let refusal = refusalToRead { return PromiseCore.fulfilled(ReadOutcome.failed(refusal)) }
        if limit < 1 {
            return PromiseCore.fulfilled(ReadOutcome.failed(SystemError(readCall, EINVAL, detail: "upTo: \(limit)")))
        }
        let read = ByteRead(connection: Uncounted(self), limit: min(limit, Self.largestPiece))
        if hasInput || reader.hasEnded { return InputLoop.read(read) }
        return InputLoop(read).startWaiting(for: read.limit)
    }

    @usableFromInline
    func readArray(_ limit: Int) -> PromiseCore {
        loop.assertOwner()
        if let refusal = refusalToRead { return PromiseCore(error: reported(refusal)) }
        if limit < 1 { return refusedRead("upTo: \(limit)") }
        return InputLoop.read(ArrayRead(connection: Uncounted(self), limit: min(limit, Self.largestPiece)))
    }

    @usableFromInline
    func readBytes(exactly count: Int) -> PromiseCore {
        if count < 1 { return refusedRead("exactly: \(count)") }
        if let refusal = refusalToRead { return PromiseCore(error: refusal) }
        return InputLoop.read(ExactRead(connection: Uncounted(self), count: count))
    }

    /// A read, or a loop, that cannot begin because of an argument.
    func refusedRead(_ detail: String) -> PromiseCore {
        PromiseCore(error: SystemError(readCall, EINVAL, detail: detail))
    }
}
