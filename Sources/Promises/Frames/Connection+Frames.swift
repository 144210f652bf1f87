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
        until delimiter: some Collection<UInt8>, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> {
        let core = startFrame(until: delimiter as? [UInt8] ?? Array(delimiter), limit).core
        return Promise(core.traced(root: "read(until:)", Promise<[UInt8]?>.self, file, line))
    }

    /// Reads until a delimiter that is text, in UTF-8.
    @inlinable @inline(__always)
    public func read(
        until delimiter: String, limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]?> { read(until: Array(delimiter.utf8), limit: limit, file: file, line: line) }

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

    /// The next frame that `decoder` finds; `nil` if the peer has ended before another byte came.
    ///
    /// Rejected with what the decoder throws, and then the bytes are still there; with `StreamError.endedEarly` if the peer
    /// ends inside of a frame. The rest is as for `read(exactly:)`.
    @inlinable @inline(__always)
    public func readFrame<Decoder: FrameDecoder>(
        _ decoder: Decoder, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Decoder.Frame?> {
        Promise(startFrame(decoder).core.traced(root: "readFrame", Promise<Decoder.Frame?>.self, file, line))
    }

    /// How many bytes were received and not consumed by a read: the beginning of a frame that is not complete, or frames that
    /// are still to be asked for.
    public var bufferedByteCount: Int { cold?.input.count ?? 0 }

    // MARK: Starting

    @usableFromInline
    func startFrame(exactly count: Int) -> Promise<[UInt8]> {
        if count < 1 { return refuseFrame("exactly: \(count)") }
        if let refusal = refusalToRead { return Promise(error: refusal) }
        let missing = count - bufferedByteCount
        if missing <= 0, let cold { return .value(cold.input.take(count)) }
        return waitForFrame(missing: missing, orAtEnd: nil, expecting: .bytes(count)) { input, missing in
            missing = count - input.count
            return missing <= 0 ? input.take(count) : nil
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
        Promise(error: SystemError(readCall, EINVAL, detail: detail))
    }

    /// Specialized in the module of the decoder, so that a frame that is here costs no lookup of its type.
    @inlinable
    func startFrame<Decoder: FrameDecoder>(_ decoder: Decoder) -> Promise<Decoder.Frame?> {
        if let refusal = refusalToRead { return Promise(error: refusal) }
        var decoder = decoder
        var missing = 1
        do {
            if let frame = try decodeBuffered(&decoder, &missing) { return .value(frame) }
        } catch { return Promise(error: error) }
        return waitForFrame(decoder, missing: missing)
    }

    /// Decodes a frame of bytes that are here; `nil` if it is not complete.
    @inlinable @inline(__always)
    func decodeBuffered<Decoder: FrameDecoder>(
        _ decoder: inout Decoder, _ missing: inout Int
    ) throws -> Decoder.Frame? {
        var frame: Decoder.Frame?
        try consumeInput { bytes in
            switch try decoder.decode(bytes.bytes) {
            case .frame(let found, let consumed):
                frame = .some(found)
                return consumed
            case .incomplete(let count):
                missing = count
                return 0
            }
        }
        return frame
    }

    /// Lends `body` the bytes that are here, if any are, and consumes as many as it returns.
    @usableFromInline
    func consumeInput(_ body: (UnsafeRawBufferPointer) throws -> Int) rethrows {
        guard let cold, !cold.input.isEmpty else { return }
        try cold.input.consume(body)
    }

    // MARK: Waiting

    /// Waits for more input, and decodes it with the rest.
    @usableFromInline
    func waitForFrame<Decoder: FrameDecoder>(_ decoder: Decoder, missing: Int) -> Promise<Decoder.Frame?> {
        var decoder = decoder
        return waitForFrame(missing: missing, orAtEnd: .some(nil), expecting: decoder.expectation) { input, missing in
            var frame: Decoder.Frame?
            try input.consume { bytes in
                switch try decoder.decode(bytes.bytes) {
                case .frame(let found, let consumed):
                    frame = .some(found)
                    return consumed
                case .incomplete(let count):
                    missing = count
                    return 0
                }
            }
            return frame.map { .some($0) }
        }
    }

    /// Waits for `missing` more bytes, or for the end. Rejected with the failure of the connection.
    @usableFromInline
    func waitForInput(missing: Int) -> Promise<Void> {
        if let refusal = refusalToRead { return Promise(error: refusal) }
        if reader.hasEnded { return failure.map { Promise(error: $0) } ?? .value }
        let core = IOPromise(Void.self, self)
        wait(core, for: PendingFrame(missing: missing, decode: nil))
        return Promise(core)
    }

    private func wait(_ core: PromiseCore, for pending: PendingFrame) {
        let cold = makeColdState
        cold.pendingFrame = pending
        reader.wait(core, for: .frame)
        if cold.frameClock != nil { updateFrameDeadline() }
        sendGathered()
        updateInterest()
    }

    private func waitForFrame<Value>(
        missing: Int, orAtEnd end: Value?, expecting expectation: @autoclosure @escaping () -> StreamError.Expectation,
        _ decode: @escaping (inout InputBuffer, inout Int) throws -> Value?
    ) -> Promise<Value> {
        // The decoder may have begun a read.
        if let refusal = refusalToRead { return Promise(error: refusal) }
        let core = IOPromise(Value.self, self)
        if reader.hasEnded {
            endOfFrame(end, expectation)(core)
            return Promise(core)
        }
        let pending = PendingFrame(missing: missing) { connection, missing in
            let cold = connection.makeColdState
            do {
                if let value = try decode(&cold.input, &missing) { return { $0.fulfill(value) } }
            } catch { return { $0.reject(error) } }
            return connection.reader.hasEnded ? connection.endOfFrame(end, expectation) : nil
        }
        wait(core, for: pending)
        return Promise(core)
    }

    /// How a read of a frame is settled when the stream has ended.
    private func endOfFrame<Value>(
        _ end: Value?, _ expectation: () -> StreamError.Expectation
    ) -> (PromiseCore) -> Void {
        if let failure { return { $0.reject(failure) } }
        let count = bufferedByteCount
        if let end, count == 0 { return { $0.fulfill(end) } }
        let error = StreamError.endedEarly(expected: expectation(), got: count)
        return { $0.reject(error) }
    }

    /// Above so many missing bytes no more than these are read: then the array that gathers them can be returned itself.
    /// Otherwise the next frames are read too: to copy them costs less than a call.
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
            // Not the whole of what a peer announces: that takes memory only as it arrives.
            if isLarge && cold.input.count == 0 { cold.input.reserve(min(missing, 1 << 20)) }
            cold.input.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else {
            promise = noteEnd(count)
        }
        // All is as it will be before a handler is called.
        if let decode = pending.decode {
            if let settle = decode(self, &missing) {
                promise = promise ?? reader.take()?.promise
                cold.pendingFrame = nil
                if let promise { settle(promise) }
            } else {
                cold.pendingFrame?.missing = missing
                if cold.frameClock != nil { updateFrameDeadline() }
            }
        } else if count <= 0 || count >= missing {
            promise = promise ?? reader.take()?.promise
            cold.pendingFrame = nil
            if count <= 0, let failure { promise?.reject(failure) } else { promise?.fulfill(()) }
        } else {
            missing -= count
            cold.pendingFrame?.missing = missing
            if cold.frameClock != nil { updateFrameDeadline() }
        }
        if count < 0 { failWrites() }
    }
}
