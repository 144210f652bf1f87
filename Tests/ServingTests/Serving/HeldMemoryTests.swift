@testable import Promises
@testable import PromisesTestSupport

/// The memory that counts for a connection: everything that keeps a peer's bytes, by its allocated size.
struct HeldMemoryTests {
    /// Joins parts: a length byte before each, and 0 after the last. Each part is a frame, or is skipped.
    private final class JoiningDecoder: FrameDecoder {
        private let skips: Bool
        private var joined: [UInt8] = []

        init(skips: Bool) { self.skips = skips }

        var heldBytes: Int { joined.capacity }

        func decode(_ bytes: RawSpan) -> DecodedFrame<[UInt8]?> {
            bytes.withUnsafeBytes { bytes in
                let count = Int(bytes[0])
                if count == 0 {
                    defer { joined = [] }
                    return .frame(joined, consumed: 1)
                }
                if bytes.count <= count { return .incomplete(missing: 1 + count - bytes.count) }
                joined += bytes[1...count]
                return skips ? .skipped(consumed: 1 + count) : .frame(nil, consumed: 1 + count)
            }
        }
    }

    /// Passes its input on when the byte 0 arrives.
    private struct HoardingFilter: ConnectionFilter {
        var hoard: [UInt8] = []

        mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) {
            bytes.withUnsafeBytes { hoard += $0 }
            guard hoard.last == 0 else { return }
            output.deliver(hoard)
            hoard = []
        }

        func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
        var heldBytes: Int { hoard.capacity }
    }

    enum Form: CaseIterable { case loop, skippingLoop, skippingRead, sequence, filter }

    private func read(_ connection: Connection, _ form: Form) -> Promise<Void> {
        switch form {
        case .loop: connection.forEachFrame(JoiningDecoder(skips: false)) { _, _ -> Promise<Void> in .value }
        case .skippingLoop: connection.forEachFrame(JoiningDecoder(skips: true)) { _, _ -> Promise<Void> in .value }
        case .skippingRead: connection.readFrame(JoiningDecoder(skips: true)).asVoid()
        case .sequence:
            Promise<Void>(on: .current) {
                for try await _ in connection.frames(JoiningDecoder(skips: false)) {}
            }
        case .filter: connection.filter(HoardingFilter()).then { $0.receive() }.asVoid()
        }
    }

    /// Three clients that send parts of an endless message; the second sends the most.
    @Test(.listener(turns: 20_000), arguments: Form.allCases) func ofDecodersAndFilters(form: Form) throws {
        var sessions: [Connection] = []
        var errors: [CInt] = []
        let served = listener.serve(
            ServeOptions(memoryLimit: 1 << 18),
            onError: { error, _ in errors.append((error as? SystemError)?.code ?? 0) }
        ) { connection in
            sessions.append(connection)
            return read(connection, form)
        }
        let part = [255] + [UInt8](repeating: 1, count: 255)
        var clients: [Peer] = []
        for parts in [25, 375, 25, 375] {
            let client = try Peer(to: listener.localAddress)
            clients.append(client)
            let sent = elsewhere { try client.send([UInt8]((0..<parts).map { _ in part }.joined())) }
            sent.catch(policy: .allErrors) { _ in }
            let number = clients.count - 1
            try net.loop.run(until: {
                listener.evictedConnections > 0
                    || number < sessions.count && sessions[number].bytesReceived == 256 * parts
            })
            try net.loop.turn(.poll)
            // The first three hold less than 225 KiB, whatever the capacity of their arrays.
            expectEqual(listener.evictedConnections, number < 3 ? 0 : 1)
        }
        expectEqual(errors, [ENOBUFS])
        sessions = []
        for client in clients { client.close() }
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
    }

    /// An announced payload takes memory only as it arrives.
    @Test(.pair(turns: 4000), arguments: [1, 5000, 200_000]) func anAnnouncementTakesNoMemory(count: Int) throws {
        let read = connection.read(exactly: 64 << 20)
        let sent = elsewhere { try peer.send([UInt8](repeating: 0, count: count)) }
        try hang(sent, timeout: patience)
        try net.loop.run(until: { connection.bytesReceived == count })
        expect(connection.heldMemory >= count && connection.heldMemory <= 2 * count + 4096)
        read.cancel()
    }

    /// And at the end it takes no more than the frame.
    @Test(.pair(turns: 4000)) func aFrameThatLacksOneByteTakesLittleMore() throws {
        let read = connection.readFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20))
        let length = withUnsafeBytes(of: UInt32(600_000).bigEndian) { Array($0) }
        let sent = elsewhere { try peer.send(length + [UInt8](repeating: 0, count: 599_999)) }
        try hang(sent, timeout: patience)
        try net.loop.run(until: { connection.bytesReceived == 600_003 })
        expect(connection.heldMemory >= 600_003 && connection.heldMemory <= 610_000, "\(connection.heldMemory)")
        read.cancel()
    }

    /// Bytes that the kernel has taken count as long as their array exists.
    @Test(.pair) func aWriteThatIsSentInPartCountsWhole() throws {
        let real = net.kernel.send
        var room = 900_000
        net.kernel.send = { fd, bytes, count in
            let sent = min(count, room)
            room -= sent
            return sent == 0 ? -Int(EAGAIN) : real(fd, bytes, min(sent, 1000))
        }
        connection.write([UInt8](repeating: 0, count: 1 << 20)).ignoringErrors()
        expect(connection.queuedBytes < 1 << 20 && connection.heldMemory >= 1 << 20)
        connection.abort()
        expectEqual(connection.heldMemory, 0)
    }

    /// The connections of a pool also have a budget: here for one in use and an idle one.
    @Test(.listener(turns: 4000)) func aPoolHasALimitOfItsOwn() throws {
        var servers: [Connection] = []
        let served = listener.serve { connection in
            servers.append(connection)
            return connection.peerGone().asVoid().asPromise()
        }
        let pool = Pool<Connection>(limits: PoolLimits(memoryLimit: 500_000))
        let key = PoolKey.address(listener.localAddress)
        let reads = (0..<2).map { _ in pool.with(key) { $0.read(exactly: 400_001) } }
        try net.loop.run(until: { servers.count == 2 })
        for server in servers { server.write([UInt8](repeating: 0, count: 400_000)).ignoringErrors() }
        let (first, resolver) = Promise<Void>.pending()
        for read in reads { read.ensure { resolver.fulfill() }.catch(policy: .allErrors) { _ in } }
        try? hang(first, timeout: patience)
        let failed = reads.filter { !$0.isPending }
        expectEqual(failed.map { code($0) }, [ENOBUFS])
        for server in servers { server.write([0]).ignoringErrors() }
        let rest = reads.filter(\.isPending)
        expectEqual(try rest.map { try hang($0, timeout: patience).count }, [400_001])
        pool.close()
        listener.close()
        servers = []
        try hang(served, timeout: patience)
    }
}
