@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Cancelling operations that wait for a descriptor: nothing is lost, and nothing is left.
struct IOCancellationTests {
    /// A read whose bytes have arrived in one event with those of another connection, whose handler cancels it.
    enum Form: CaseIterable {
        case read, receive, exactly, until, line, frame

        /// - Returns: cancels the read, and its bytes if it has been fulfilled.
        func begin(_ connection: Connection) -> (cancel: () -> Void, bytes: () -> [UInt8]?) {
            func form<Value>(
                _ read: Promise<Value>, _ bytes: @escaping (Value) -> [UInt8]?
            ) -> (() -> Void, () -> [UInt8]?) { ({ read.cancel() }, { read.settledValue.flatMap(bytes) }) }
            switch self {
            case .read:
                let read = connection.read()
                return ({ read.cancel() }, { if case .bytes(let bytes)? = read.settledValue { bytes } else { nil } })
            case .receive: return form(connection.receive()) { $0 }
            case .exactly: return form(connection.read(exactly: 6)) { $0 }
            case .until: return form(connection.read(until: "\n")) { $0.map { $0 + [0x0A] } }
            case .line: return form(connection.readLine()) { $0.map { Array("\($0)\n".utf8) } }
            case .frame: return form(connection.readFrame(LineDecoder())) { $0.map { Array("\($0)\n".utf8) } }
            }
        }
    }

    @Test(.network, arguments: Form.allCases, [false, true]) func aReadThatIsCancelledAfterItsBytesHaveArrived(
        _ form: Form, isLarge: Bool
    ) throws {
        let (data, peer) = try Connection.pair()
        let (control, other) = try Connection.pair()
        if isLarge {
            // The next read is received in an array of its own.
            peer.write(pattern(20_000)).cauterize()
            expectEqual(try hang(data.receive(), timeout: patience).count, 20_000)
        }
        let (cancel, bytes) = form.begin(data)
        let cancelled = control.read().done { _ in cancel() }
        for sender in [other, peer] { sender.write("hello\n").cauterize() }
        try hang(cancelled, timeout: patience)
        if let bytes = bytes() {
            expectEqual(bytes, Array("hello\n".utf8))
        } else {
            expectEqual(try hang(data.receive(), timeout: patience), Array("hello\n".utf8))
        }
    }

    @Test(.listener) func aCancelledAcceptIsPassedOver() throws {
        let first = listener.accept()
        let second = listener.accept()
        first.cancel()
        _ = try Peer(to: listener.localAddress)
        try hang(second, timeout: patience).abort()
        expect(first.error as? PromiseError == .cancelled)
    }

    // MARK: Captures that act when a cancellation drops them

    /// A loop over chunks whose body waits for `source`, and whose captures settle it in the middle of a cancellation.
    private func loop(over connection: Connection, settling source: Promise<Int>, _ act: @escaping () -> Void)
        -> (chunks: Promise<Void>, hasBegun: () -> Bool)
    {
        let words = LastWords(act)
        var source: Promise<Int>? = source
        let chunks = connection.forEachChunk { (_: RawSpan) -> Promise<Int> in
            words.use()
            defer { source = nil }
            return source!
        }
        return (chunks, { source == nil })
    }

    @Test(.pair, arguments: [false, true]) func aPromiseThatTheyReleaseIsNotUsed(turns: Bool) throws {
        let (chunks, hasBegun) = {
            let (source, resolver) = Promise<Int>.pending()
            source.pipe { _ in }
            return loop(over: connection, settling: source) {
                resolver.fulfill(1)
                if turns { _ = try? EventLoop.current.turn(.poll) }
            }
        }()
        try peer.send("x")
        try EventLoop.current.run(until: hasBegun)
        chunks.cancel()
        #expect(throws: PromiseError.cancelled) { try hang(chunks, timeout: patience) }
    }

    @Test(.pair) func anotherCancellationByThemDoesNotDecideTheError() throws {
        var chunks: Promise<Void>?
        do {
            let words = LastWords { chunks?.cancel() }
            chunks = connection.forEachChunk { (_: RawSpan) -> Void in words.use() }
        }
        for _ in 0..<2 { try EventLoop.current.turn(.poll) }
        chunks?.cancel(with: Flaw(1))
        #expect(throws: Flaw(1)) { try hang(chunks!, timeout: patience) }
        chunks = nil
    }
}
