import Glibc
import Reactor

// Reading of a shape that the peer's packets do not have: so many bytes, or up to a delimiter.

extension Connection {
    /// Exactly `count` bytes.
    ///
    /// What comes beyond them is kept, and is the next read's, of whatever form. So are the bytes of a read that was
    /// cancelled or rejected. Rejected with `StreamError.endedEarly` if the peer ends before, and with a `SystemError`
    /// as `receive` is; `EINVAL` if `count` is below one.
    @inlinable @inline(__always)
    public func read(
        exactly count: Int, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> {
        Promise(startFrame(exactly: count).core.traced(root: "read(exactly:)", Promise<[UInt8]>.self, file, line))
    }

    /// The bytes before the next `delimiter`, which is read too and left out; `nil` if the peer has ended before
    /// another byte came.
    ///
    /// Rejected with `StreamError.limitExceeded` if there are more than `limit` bytes before it, with
    /// `StreamError.endedEarly` if the peer ends in their midst; then the bytes are still there for a read of another
    /// form. The rest is as for `read(exactly:)`; `EINVAL` if the delimiter is empty or `limit` below one.
    @inlinable @inline(__always)
    public func read(
        until delimiter: [UInt8], limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> {
        let core = startFrame(until: delimiter, limit).core
        return Promise(core.traced(root: "read(until:)", Promise<[UInt8]?>.self, file, line))
    }

    /// The same for a delimiter of one byte.
    @inlinable @inline(__always)
    public func read(
        until delimiter: UInt8, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> { read(until: [delimiter], limit: limit, file: file, line: line) }

    /// The next line, without its `\n` or `\r\n`; `nil` if the peer has ended before another byte came.
    ///
    /// `limit` is in bytes. Rejected with `StreamError.notUTF8` if it is no text; with `StreamError.endedEarly` if the
    /// last line has no end, and `receive()` brings what there is of it. The rest is as for `read(until:)`.
    @inlinable @inline(__always)
    public func readLine(
        limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<String?> {
        Promise(startLine(limit).core.traced(root: "readLine", Promise<String?>.self, file, line))
    }

    /// Calls `body` with each line, one after the other, each when the promise of the one before is fulfilled, until
    /// the peer ends. The first rejection, or an error that `body` throws, ends it, and so do the errors of `readLine`.
    /// Cancelling it cancels the read, or the promise that it waits for if nobody else does.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine<Next: Thenable>(
        limit: Int = 65536, _ body: @escaping (String) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let series = eachLine(limit) { try body($0).asPromise().core }
        return Promise(series.start(series.makeCore().traced(root: "forEachLine", Promise<Void>.self, file, line)))
    }

    /// Calls `body` with each line until the peer ends; see the form with promises.
    @available(*, noasync, message: "no loop runs the handler in an async function")
    public func forEachLine(
        limit: Int = 65536, _ body: @escaping (String) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        if refusalToRead == nil { reader.readsAhead = true }
        let series = eachLine(limit) {
            try body($0)
            return PromiseCore.void
        }
        return Promise(series.start(series.makeCore().traced(root: "forEachLine", Promise<Void>.self, file, line)))
    }

    /// By turns a line and what the body makes of it.
    private func eachLine(_ limit: Int, _ body: @escaping (String) throws -> PromiseCore) -> SequentialOperation<Void> {
        var isReading = false
        return SequentialOperation { [self] source, core in
            isReading.toggle()
            if isReading { return startLine(limit).core }
            guard let source, let line = source._withUnsafeGuaranteedRef({ $0.value(as: String?.self) }) else {
                core.finish(())
                return nil
            }
            return try body(line)
        }
    }

    // MARK: What becomes of them

    @usableFromInline
    func startFrame(exactly count: Int) -> Promise<[UInt8]> {
        count < 1 ? refuseFrame("exactly: \(count)") : start(.exactly(count))
    }

    @usableFromInline
    func startFrame(until delimiter: [UInt8], _ limit: Int) -> Promise<[UInt8]?> {
        if delimiter.isEmpty { return refuseFrame("until: an empty delimiter") }
        return limit < 1 ? refuseFrame("limit: \(limit)") : start(.until(delimiter, limit: limit))
    }

    @usableFromInline
    func startLine(_ limit: Int) -> Promise<String?> {
        limit < 1 ? refuseFrame("limit: \(limit)") : start(.line(limit: limit))
    }

    private func refuseFrame<Value>(_ detail: String) -> Promise<Value> {
        Promise(error: SystemError(readCall, EINVAL, detail: detail))
    }

    private func start<Value>(_ frame: FrameDecoder) -> Promise<Value> {
        if let refusal = refusalToRead { return Promise(error: refusal) }
        let core = IOPromise(Value.self, self)
        let cold = makeColdState
        cold.input.beginSearch()
        if let answer = answer(frame, cold) {
            settle(core, answer)
        } else {
            cold.decoder = frame
            reader.wait(core, for: .frame)
            sendGathered()
            updateInterest()
        }
        return Promise(core)
    }

    func readForFrame(_ promise: PromiseCore) {
        guard let cold, let frame = cold.decoder else { return }
        let buffer = loop.scratch
        let count = receive(into: buffer, atMost: frame.bytesNeeded(cold.input))
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        if count > 0 {
            noteReceived(count)
            if case .exactly(let total) = frame, cold.input.count == 0 { cold.input.reserve(min(total, 1 << 20)) }
            cold.input.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else {
            noteEnd(count)
        }
        if let answer = answer(frame, cold) {
            // All is as it will be before a handler is called.
            _ = reader.take()
            cold.decoder = nil
            settle(promise, answer)
        }
        if count < 0 { failWrites() }
    }

    /// What a frame is answered with; `nil` if it has to wait.
    private func answer(_ frame: FrameDecoder, _ cold: ColdState) -> FrameDecoder.Answer? {
        let answer = frame.answer(&cold.input)
        guard case .wanting = answer else { return answer }
        guard reader.hasEnded else { return nil }
        if let failure { return .refused(failure) }
        if cold.input.isEmpty, frame.mayBeMissing { return frame.nothing }
        return .refused(StreamError.endedEarly(expected: frame.expectation, got: cold.input.count))
    }

    private func settle(_ promise: PromiseCore, _ answer: FrameDecoder.Answer) {
        switch answer {
        case .bytes(let bytes): promise.fulfill(bytes)
        case .delimited(let bytes): promise.fulfill(bytes)
        case .line(let text): promise.fulfill(text)
        case .refused(let error): promise.reject(error)
        case .wanting: break
        }
    }
}
