import Glibc
import Reactor

// Reads of frames: a number of bytes, the bytes before a delimiter, or what a decoder finds.

extension Connection {
    /// Reads exactly `count` bytes.
    ///
    /// Bytes that arrive behind them are kept for the next read, which may have another form. So are the bytes of a
    /// read that was cancelled or rejected. Rejected with
    /// - `StreamError.endedEarly` if the peer ends before;
    /// - `StreamError.timedOut` at a limit of `frameTimeouts`;
    /// - a `SystemError` as `receive` is, and with `EINVAL` if `count` is below one.
    ///
    /// - Parameters:
    ///   - count: the number of bytes; at least one.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of exactly these bytes.
    @inlinable @inline(__always)
    public func read(
        exactly count: Int, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> {
        Promise(startFrame(exactly: count).core.traced(root: "read(exactly:)", Promise<[UInt8]>.self, file, line))
    }

    /// Reads the bytes before the next `delimiter`, and drops the delimiter.
    ///
    /// The bytes of a rejected read are kept for a read of another form. Rejected as `read(exactly:)`, and with
    /// - `StreamError.limitExceeded` if more than `limit` bytes precede the delimiter;
    /// - a `SystemError` with `EINVAL` if the delimiter is empty or `limit` is below one.
    ///
    /// - Parameters:
    ///   - delimiter: the bytes to look for; at least one.
    ///   - limit: the maximum number of bytes before the delimiter; at least one.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the bytes; `nil` if the peer ends before another byte has come.
    @inlinable @inline(__always)
    public func read(
        until delimiter: some Collection<UInt8>, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> {
        let core = startFrame(until: delimiter as? [UInt8] ?? Array(delimiter), limit).core
        return Promise(core.traced(root: "read(until:)", Promise<[UInt8]?>.self, file, line))
    }

    /// Reads the bytes before the next `delimiter`, which is sought in UTF-8.
    /// - Parameters:
    ///   - delimiter: the text to look for.
    ///   - limit: the maximum number of bytes before the delimiter.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with bytes.
    @inlinable @inline(__always)
    public func read(
        until delimiter: String, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> { read(until: Array(delimiter.utf8), limit: limit, file: file, line: line) }

    /// Reads the bytes before the next byte that equals `delimiter`.
    /// - Parameters:
    ///   - delimiter: the byte to look for.
    ///   - limit: the maximum number of bytes before the delimiter.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: as the form with bytes.
    @inlinable @inline(__always)
    public func read(
        until delimiter: UInt8, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> { read(until: [delimiter], limit: limit, file: file, line: line) }

    /// Reads the next line.
    ///
    /// Rejected as `read(until:)`, and with `StreamError.notUTF8` if the line is not UTF-8. If the last line has no
    /// end, this is rejected with `StreamError.endedEarly`, and `receive()` returns that part of a line.
    /// - Parameters:
    ///   - limit: the maximum number of bytes of the line.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the line, without its `\n` or `\r\n`; `nil` if the peer ends before another byte has
    ///   come.
    @inlinable @inline(__always)
    public func readLine(
        limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<String?> {
        Promise(startLine(limit).core.traced(root: "readLine", Promise<String?>.self, file, line))
    }

    /// Reads the next frame that `decoder` finds; `nil` if the peer ends before another byte has come.
    ///
    /// ```swift
    /// connection.readFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)).done { payload in handle(payload) }
    /// ```
    ///
    /// Rejected as `read(exactly:)`, and with the error that the decoder throws; the bytes are kept then.
    /// - Parameters:
    ///   - decoder: finds the frame.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the frame; `nil` if the peer ends before another byte has come.
    @inlinable @inline(__always)
    public func readFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Decoder.Frame?> {
        Promise(startFrame(decoder).core.traced(root: "readFrame", Promise<Decoder.Frame?>.self, file, line))
    }

    /// The number of bytes that were received and that no read has consumed: the beginning of an incomplete frame, or
    /// complete frames that have not been read yet.
    public var bufferedByteCount: Int { cold?.input.count ?? 0 }

    // MARK: Starting

    @usableFromInline
    func startFrame(exactly count: Int) -> Promise<[UInt8]> {
        if count < 1 { return refuseFrame("exactly: \(count)") }
        if let refusal = refusalToRead { return Promise(refused: refusal) }
        let missing = count - bufferedByteCount
        if missing <= 0, let cold { return Promise(PromiseCore.fulfilled(cold.input.take(count))) }
        return waitForFrame(missing: missing, orAtEnd: nil, expecting: .bytes(count)) { connection, missing in
            missing = count - connection.bufferedByteCount
            return missing <= 0 ? connection.takeInput(count) : nil
        }
    }

    @usableFromInline
    func startFrame(until delimiter: [UInt8], _ limit: Int) -> Promise<[UInt8]?> {
        if delimiter.isEmpty { return refuseFrame("until: an empty delimiter") }
        return limit < 1 ? refuseFrame("limit: \(limit)") : startFrame(DelimiterDecoder(delimiter, limit: limit))
    }

    @usableFromInline
    func startLine(_ limit: Int) -> Promise<String?> {
        limit < 1 ? refuseFrame("limit: \(limit)") : startFrame(LineDecoder(limit: limit))
    }

    private func refuseFrame<Value>(_ detail: String) -> Promise<Value> {
        Promise(refused: SystemError(readCall, EINVAL, detail: detail))
    }

    /// Specialized in the module of the decoder, so that the read of a buffered frame looks up no type metadata.
    @inlinable
    func startFrame<Decoder: FrameDecoder>(_ decoder: Decoder) -> Promise<Decoder.Frame?> {
        if let refusal = refusalToRead { return Promise(refused: refusal) }
        var decoder = decoder
        var missing = 0
        do {
            if let frame = try nextBuffered(&decoder, &missing) {
                return Promise(PromiseCore.fulfilled(frame as Decoder.Frame?))
            }
        } catch { return Promise(refused: error) }
        return waitForFrame(decoder, missing: missing)
    }

    /// Decodes the next frame of the buffered bytes; `nil` if it is incomplete.
    @inlinable @inline(__always)
    func nextBuffered<Decoder: FrameDecoder>(
        _ decoder: inout Decoder, _ missing: inout Int
    ) throws -> Decoder.Frame? {
        repeat {
            missing = 1
            if let frame = try decodeBuffered(&decoder, &missing) { return frame }
        } while missing == 0
        return nil
    }

    /// Calls the decoder once with the buffered bytes, if there are any, and drops what it has consumed.
    /// - Returns: `nil` if it has found no frame. Then `missing` is 0 if it has skipped bytes and is to be called
    ///   again.
    @inlinable @inline(__always)
    func decodeBuffered<Decoder: FrameDecoder>(
        _ decoder: inout Decoder, _ missing: inout Int
    ) throws -> Decoder.Frame? {
        var frame: Decoder.Frame?
        try consumeInput { bytes in
            switch try decoder.decode(bytes.bytes) {
            case .frame(let found, let consumed):
                if consumed < 1 || consumed > bytes.count {
                    throw miscount(decoder, "frame", consumed, of: bytes.count)
                }
                frame = .some(found)
                return consumed
            case .skipped(let consumed):
                if consumed < 0 || consumed > bytes.count {
                    throw miscount(decoder, "skipped", consumed, of: bytes.count)
                }
                // A decoder that skips nothing waits for more: it would be called forever.
                missing = consumed > 0 ? 0 : 1
                noteSkipped(consumed)
                return consumed
            case .incomplete(let count):
                missing = max(count, 1)
                return 0
            }
        }
        return frame
    }

    @usableFromInline @inline(never)
    func miscount(_ decoder: some FrameDecoder, _ result: String, _ consumed: Int, of count: Int) -> PromiseError {
        .badInput("\(type(of: decoder)) has returned .\(result)(consumed: \(consumed)) for \(count) bytes")
    }

    /// Lends the buffered bytes to `body`, if there are any, and consumes as many of them as `body` returns.
    @usableFromInline
    func consumeInput(_ body: (UnsafeRawBufferPointer) throws -> Int) rethrows {
        guard let cold, !cold.input.isEmpty else { return }
        try cold.input.consume(body)
    }

    // MARK: Waiting

    /// Waits for further input, and decodes it together with the buffered bytes.
    @usableFromInline
    func waitForFrame<Decoder: FrameDecoder>(_ decoder: Decoder, missing: Int) -> Promise<Decoder.Frame?> {
        var decoder = decoder
        return waitForFrame(missing: missing, orAtEnd: .some(nil), expecting: decoder.expectation) {
            try $0.nextBuffered(&decoder, &$1).map { .some($0) }
        }
    }

    /// Waits for `missing` more bytes, or for the end. Rejected with the failure of the connection.
    @usableFromInline
    func waitForInput(missing: Int) -> Promise<Void> {
        if let refusal = refusalToRead { return Promise(refused: refusal) }
        if reader.hasEnded { return reportedFailure.map { Promise(refused: $0) } ?? .value }
        let core = IOPromise(Void.self, self)
        wait(core, for: PendingFrame(missing: missing, decode: nil))
        return Promise(core)
    }

    private func wait(_ core: PromiseCore, for pending: PendingFrame) {
        let cold = ensuredColdState
        cold.pendingFrame = pending
        reader.wait(core, for: .frame)
        if cold.frameClock != nil { updateFrameDeadline() }
        cold.attachment?.heldMemoryMayHaveChanged(of: self)
        sendGathered()
        updateInterest()
        if pending.decode == nil { cold.attachment?.connectionMayBeIdle(self) }
    }

    private func waitForFrame<Value>(
        missing: Int, orAtEnd end: Value?, expecting expectation: @autoclosure @escaping () -> StreamError.Expectation,
        _ decode: @escaping (_ connection: Connection, _ missing: inout Int) throws -> Value?
    ) -> Promise<Value> {
        // The decoder may have begun a read.
        if let refusal = refusalToRead { return Promise(refused: refusal) }
        let core = IOPromise(Value.self, self)
        if reader.hasEnded {
            endOfFrame(end, expectation)(core)
            return Promise(core)
        }
        let pending = PendingFrame(missing: missing) { connection, missing in
            do {
                if let value = try decode(connection, &missing) { return { $0.fulfill(value) } }
            } catch { return { $0.reject(error) } }
            return connection.reader.hasEnded ? connection.endOfFrame(end, expectation) : nil
        }
        wait(core, for: pending)
        return Promise(core)
    }

    /// Returns what settles the read of a frame after the end of the stream.
    private func endOfFrame<Value>(
        _ end: Value?, _ expectation: () -> StreamError.Expectation
    ) -> (PromiseCore) -> Void {
        if let failure = reportedFailure { return { $0.reject(failure) } }
        let count = bufferedByteCount
        if let end, count == 0 { return { $0.fulfill(end) } }
        let error = StreamError.endedEarly(expected: expectation(), got: count)
        return { $0.reject(error) }
    }

    /// If more bytes than this are missing, a read asks for these alone: the array that collects them can then be
    /// returned without a copy. Otherwise it asks for the next frames too, whose copy costs less than another call.
    private static var largestReadAhead: Int { 4096 }

    func readForFrame() {
        guard let cold, let pending = cold.pendingFrame else { return }
        let buffer = loop.scratch
        var missing = pending.missing
        var promise: PromiseCore?
        let isLarge = missing > Self.largestReadAhead
        let count = receive(into: buffer, atMost: isLarge ? missing : buffer.count)
        if count == -Int(EAGAIN) { return noteFutileReadiness(readCall) }
        if count > 0 {
            noteReceived(count)
            // At most 1 MiB in advance: what a peer announces takes memory only as it arrives.
            if isLarge && cold.input.count == 0 { cold.input.reserve(min(missing, 1 << 20)) }
            cold.input.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            cold.attachment?.heldMemoryMayHaveChanged(of: self)
        } else {
            promise = noteEnd(count)
        }
        guard let settle = outcome(of: pending, afterReading: count, &missing) else {
            cold.pendingFrame?.missing = missing
            if cold.frameClock != nil { updateFrameDeadline() }
            return
        }
        // The state is final before a handler is called.
        promise = promise ?? reader.take()?.promise
        cold.pendingFrame = nil
        if cold.frameClock != nil { endFrameWait() }
        if let promise { settle(promise) }
        if count < 0 { failWrites() }
    }

    /// Returns what settles the read of `pending` after recv(2) has returned `count`; `nil` if the frame is still
    /// incomplete, which it is not at the end of the stream.
    private func outcome(
        of pending: PendingFrame, afterReading count: Int, _ missing: inout Int
    ) -> ((PromiseCore) -> Void)? {
        if let decode = pending.decode { return decode(self, &missing) }
        if count <= 0, let failure { return { $0.reject(failure) } }
        missing -= count
        return count > 0 && missing > 0 ? nil : { $0.fulfill(()) }
    }
}
