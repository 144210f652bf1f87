@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Serves connections that hold what they receive, since each reads a message that does not end.
private final class Holders {
    private var sessions: [Connection] = []
    private var served = Promise.value(DrainResult())
    private(set) var clients: [Peer] = []
    private(set) var errors: [CInt] = []

    /// - Parameter read: is called with the connection and the number of those before it.
    init(limit: Int, _ read: @escaping (Connection, Int) -> Promise<Void>) {
        served = listener.serve(
            ServeOptions(memoryLimit: limit),
            onError: { [self] error, _ in errors.append((error as? SystemError)?.code ?? 0) }
        ) { [self] connection in
            sessions.append(connection)
            return read(connection, sessions.count - 1)
        }
    }

    /// Adds a client that sends `bytes`, and returns when they have arrived or the client is evicted.
    func add(_ bytes: [UInt8]) throws {
        let client = try Peer(to: listener.localAddress)
        clients.append(client)
        let sent = elsewhere { try client.send(bytes) }
        sent.ignoringErrors()
        let number = clients.count - 1
        try net.loop.run(until: {
            number < sessions.count && (sessions[number].isClosed || sessions[number].bytesReceived == bytes.count)
        })
        try net.loop.turn(.poll)
    }

    func end() throws {
        sessions = []
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
    }
}

private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

/// The beginning of a frame of `LengthPrefixDecoder<UInt32>`.
private func header(_ count: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) } }

/// The limit of the memory that counts for connections: everything that keeps a peer's bytes, by its allocated size.
struct MemoryLimitTests {
    @Test(.listener(turns: 4000)) func endsTheOnesThatHoldTheMost() throws {
        // With one byte missing they take little more memory than they have sent.
        let counts = [10_000, 600_000, 20_000, 300_000, 500_000]
        let holders = Holders(limit: 1_200_000) { $0.read(exactly: counts[$1] + 1).asVoid() }
        for count in counts { try holders.add(zeros(count)) }
        // The last one exceeds the limit, and holds less than the second.
        expect(listener.evictedConnections == 1 && listener.activeConnections == 4)
        expectEqual(holders.errors, [ENOBUFS])
        expectEqual(holders.clients[1].failureOfReading(), ECONNRESET)
        try holders.end()
    }

    @Test(.listener(turns: 4000)) func leavesThoseBelowTheLimitAlone() throws {
        let counts = [300_000, 300_000, 300_000, 390_000, 390_000, 390_000]
        let holders = Holders(limit: 1_200_000) { $0.read(exactly: counts[$1] + 1).asVoid() }
        for count in counts[..<3] { try holders.add(zeros(count)) }
        for client in holders.clients { client.reset() }
        try net.loop.run(until: { listener.activeConnections == 0 })
        // Connections that have ended no longer count.
        for count in counts[3...] { try holders.add(zeros(count)) }
        expect(listener.evictedConnections == 0 && listener.activeConnections == 3)
        expectEqual(holders.errors, [ECONNRESET, ECONNRESET, ECONNRESET])
        try holders.end()
    }

    /// Frames that are read to their ends, and answers that are read, no longer count in the sum.
    @Test(.listener(turns: 40_000)) func whatIsReadAndSentNoLongerCounts() throws {
        let served = listener.serve(ServeOptions(memoryLimit: 200_000)) { connection in
            connection.forEachFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)) { frame, _ in
                connection.write(frame)
            }
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        let question = header(60_000) + zeros(60_000)
        for _ in 0..<20 {
            for client in clients {
                let answer = elsewhere {
                    try client.send(question)
                    return try client.receive(exactly: 60_000).count
                }
                expectEqual(try hang(answer, timeout: patience), 60_000)
            }
        }
        expect(listener.evictedConnections == 0 && listener.activeConnections == 3)
        try listener.end(served, closing: clients)
    }

    @Test(.listener(turns: 4000)) func unsentOutputCountsAndAnAsyncHandlerIsNotifiedToo() throws {
        var errors: [CInt] = []
        let served = listener.serveAsync(
            ServeOptions(memoryLimit: 4 << 20),
            onError: { error, _ in errors.append((error as? SystemError)?.code ?? 0) }
        ) {
            connection in
            connection.writeQueueLimit = 64 << 20
            for _ in 0..<64 { broadcast(zeros(1 << 20), to: [connection], overflow: .drop) }
            _ = try await firstly { endless() }.value
        }
        let client = try Peer(to: listener.localAddress, receiveBuffer: 4096)
        try net.loop.run(until: { !errors.isEmpty })
        expect(errors == [ENOBUFS] && listener.evictedConnections == 1)
        try listener.end(served, closing: [client])
    }

    /// Many idle clients may hold nearly as much as they may, and each frame of another exceeds the limit until it is
    /// handled.
    @Test(.pair) func aFrameThatPassesDoesNotCostALookAtAllConnections() throws {
        var looks = 0
        let budget = MemoryBudget(1000, on: net.loop, didEvict: {}) {
            looks += 1
            return []
        }
        budget.begin(for: connection)
        let reading = connection.forEachFrame(LengthPrefixDecoder<UInt32>(limit: 1 << 20)) { _, _ in Promise.value }
        try net.deliver(header(2000) + zeros(2000), from: peer)
        try net.loop.turn(.poll)
        expect(connection.bytesReceived == 2004 && looks == 0)
        try net.deliver(header(2000) + zeros(1999), from: peer)
        try net.loop.turn(.poll)
        expect(connection.bytesReceived == 4007 && looks == 1)
        reading.cancel()
    }

    @Test(.group(2)) func eachLoopOfAGroupHasItsShare() throws {
        let served = listener.serve(on: loops, ServeOptions(memoryLimit: 2_000_000)) {
            $0.read(exactly: 800_001).asVoid()
        }
        let clients = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
        let sent = clients.map { client in
            elsewhere { try client.send(zeros(800_000)) }.recover(policy: .allErrors) { _ in .value }
        }
        try hang(when(fulfilled: sent).asVoid(), timeout: patience)
        // Two of 800,000 bytes on each loop, one of which is evicted. Other threads count, which does not wake this
        // loop.
        for _ in 0..<6000 where listener.evictedConnections < 2 { hang(after(.milliseconds(10))) }
        expectEqual(listener.evictedConnections, 2)
        for client in clients { client.close() }
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
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
        for server in servers { server.write(zeros(400_000)).ignoringErrors() }
        let (first, resolver) = Promise<Void>.pending()
        for read in reads { read.ensure { resolver.fulfill() }.ignoringErrors() }
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

/// The memory that counts for one connection.
struct HeldMemoryTests {
    /// Joins parts with a length byte before each. Each part is a frame, or is skipped.
    private final class JoiningDecoder: FrameDecoder {
        private let skips: Bool
        private var joined: [UInt8] = []

        init(skips: Bool) { self.skips = skips }

        var heldBytes: Int { joined.capacity }

        func decode(_ bytes: RawSpan) -> DecodedFrame<Void> {
            bytes.withUnsafeBytes { bytes in
                let count = Int(bytes[0])
                if bytes.count <= count { return .incomplete(missing: 1 + count - bytes.count) }
                joined += bytes[1...count]
                return skips ? .skipped(consumed: 1 + count) : .frame((), consumed: 1 + count)
            }
        }
    }

    /// Keeps its input.
    private struct HoardingFilter: ConnectionFilter {
        var hoard: [UInt8] = []

        mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) { bytes.withUnsafeBytes { hoard += $0 } }
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

    /// Clients that send parts of an endless message; the second and the last send the most.
    @Test(.listener(turns: 20_000), arguments: Form.allCases) func ofDecodersAndFilters(form: Form) throws {
        let holders = Holders(limit: 1 << 18) { connection, _ in read(connection, form) }
        let part = [255] + [UInt8](repeating: 1, count: 255)
        for (number, parts) in [25, 375, 25, 375].enumerated() {
            try holders.add([UInt8]((0..<parts).map { _ in part }.joined()))
            // The first three hold less than 225 KiB, whatever the capacity of their arrays.
            expectEqual(listener.evictedConnections, number < 3 ? 0 : 1)
        }
        expectEqual(holders.errors, [ENOBUFS])
        for client in holders.clients { client.close() }
        try holders.end()
    }

    private struct ReportingDecoder: FrameDecoder {
        let heldBytes: Int
        func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> { .incomplete(missing: 1) }
    }

    private struct ReportingFilter: ConnectionFilter {
        let heldBytes: Int
        func receive(_ bytes: RawSpan, _ output: inout FilterOutput) {}
        func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
    }

    /// What a decoder or a filter of the program reports is added up with the rest.
    @Test(.listener(turns: 4000), arguments: [Int.min, .min + 1, -1, .max - 1, .max], [false, true])
    func aReportThatMakesNoSenseIsNoTrap(held: Int, isOfFilter: Bool) throws {
        let holders = Holders(limit: 1 << 18) { connection, _ in
            if isOfFilter {
                return connection.filter(ReportingFilter(heldBytes: held)).then { $0.receive() }.asVoid()
            }
            return connection.forEachFrame(ReportingDecoder(heldBytes: held)) { _, _ -> Promise<Void> in .value }
        }
        for _ in 0..<3 { try holders.add([1, 2, 3]) }
        expect(held > 0 ? listener.evictedConnections > 0 : listener.evictedConnections == 0)
        for client in holders.clients { client.close() }
        try holders.end()
    }

    /// An announced payload takes memory only as it arrives, and at the end no more than the frame.
    @Test(.pair(turns: 4000), arguments: [(1, 64 << 20), (5000, 64 << 20), (200_000, 64 << 20), (599_999, 600_000)])
    func anAnnouncementTakesNoMemory(sent: Int, of size: Int) throws {
        let read = connection.readFrame(LengthPrefixDecoder<UInt32>(limit: 64 << 20))
        let sending = elsewhere { try peer.send(header(size) + zeros(sent)) }
        try hang(sending, timeout: patience)
        try net.loop.run(until: { connection.bytesReceived == 4 + sent })
        let most = min(2 * sent + 4096, size + 10_000)
        expect(connection.heldMemory >= sent && connection.heldMemory <= most, "\(connection.heldMemory)")
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
        connection.write(zeros(1 << 20)).ignoringErrors()
        expect(connection.queuedBytes < 1 << 20 && connection.heldMemory >= 1 << 20)
        connection.abort()
        expectEqual(connection.heldMemory, 0)
    }
}

/// How far the connections may exceed their limit together.
struct MemoryLimitBoundTests {
    enum Form: CaseIterable { case bodies, jobs }

    /// Many clients whose events are delivered in one turn, each of which makes the server hold much.
    @Test(.network(turns: 4000), arguments: Form.allCases) func itIsExceededByASixteenthAndOneEvent(form: Form) throws {
        let (limit, answer) = (8 << 20, zeros(1 << 20))
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        let listener = try net.listen()
        var sessions: [Connection] = []
        var most = 0
        func write(_ connection: Connection) -> Promise<Void> {
            let written = connection.write(answer)
            most = max(most, sessions.reduce(0) { $0 + ($1.isClosed ? 0 : $1.heldMemory) })
            return written
        }
        let served = listener.serve(ServeOptions(memoryLimit: limit), onError: { _, _ in }) { connection in
            sessions.append(connection)
            return form == .bodies
                ? connection.forEachChunk { _ in write(connection) }
                : connection.receive().then { _ in write(connection) }
        }
        let clients = try (0..<60).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.activeConnections == clients.count })
        for client in clients { try client.send("x") }
        for accepted in net.ledger.accepted { awaitArrival(of: POLLIN, at: accepted) }
        try net.loop.run(until: { most > 0 && listener.evictedConnections > 50 })
        expect(most <= limit + limit / 16 + answer.count + 100_000, "\(most)")
        for client in clients { client.reset() }
        sessions = []
        _ = hang(listener.drain(deadline: .zero))
        _ = try hang(served, timeout: patience)
    }

    /// A part of a large block that the program has anyway.
    @Test(.network(turns: 4000)) func ofSharedMemoryCountsWhatIsQueued() throws {
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        let listener = try net.listen()
        let page = SharedBytes(zeros(16 << 20))
        var number = 0
        var sessions: [Connection] = []
        let served = listener.serve(ServeOptions(memoryLimit: 4 << 20), onError: { _, _ in }) { connection in
            number += 1
            sessions.append(connection)
            let start = number % 10 * 65_536
            return connection.write { $0.append(page[start..<start + 65_536]) }
        }
        let clients = try (0..<20).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { number == clients.count })
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expectEqual(listener.evictedConnections, 0)
        expect(sessions.allSatisfy { $0.heldMemory < 70_000 })
        for client in clients { client.reset() }
        sessions = []
        _ = hang(listener.drain(deadline: .zero))
        _ = try hang(served, timeout: patience)
    }

    /// A page that is sent in small parts is looked at part by part when the limit is exceeded.
    @Test(.ownThread) func lookingAtTheSharedPartsOfAQueueTakesLinearTime() {
        expectProportional(8_192) { count in
            let budget = MemoryBudget(.max, on: .current, didEvict: {}, of: { [] })
            let page = SharedBytes(zeros(count))
            let parts = (0..<count).map { page[$0..<$0 + 1] }
            for part in parts { budget.hold(part) }
            budget.hold(parts[0])
            expectEqual(parts.reduce(0) { $0 + budget.memoryFreed(by: $1) }, count - 1)
            for part in parts { budget.release(part) }
            expectEqual(budget.memoryFreed(by: parts[0]), 1)
        }
    }

    /// Overlapping parts of a block are no more than the block, and those that hold memory of their own end first.
    @Test(.network(turns: 4000)) func partsOfABlockAreNoMoreThanTheBlock() throws {
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        let listener = try net.listen()
        let page = SharedBytes(zeros(1 << 20))
        var sessions: [Connection] = []
        let served = listener.serve(ServeOptions(memoryLimit: 3 << 20), onError: { _, _ in }) { connection in
            sessions.append(connection)
            if sessions.count > 30 { return connection.write(zeros(600_000)) }
            return connection.write { $0.append(page[sessions.count..<1 << 20]) }
        }
        var clients = try (0..<30).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { sessions.count == 30 })
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expectEqual(listener.evictedConnections, 0)
        clients += try (0..<5).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.evictedConnections > 0 })
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expect(sessions[..<30].allSatisfy { !$0.isClosed })
        for client in clients { client.reset() }
        sessions = []
        _ = hang(listener.drain(deadline: .zero))
        _ = try hang(served, timeout: patience)
    }
}
