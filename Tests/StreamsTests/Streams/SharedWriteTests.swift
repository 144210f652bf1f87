@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Memory shared by a write: the bytes sent from it, and when it is released.
struct SharedWriteTests {
    enum End: CaseIterable {
        case sentAtOnce, sentInParts, sentByClose, withdrawn, withdrawnTooLate, aborted, reset, failed, loopEnds
        case refusedAsFull, refusedAtTheEnd, refusedAsClosed, thrown, filtered, filteredInParts
    }

    private let head = Array("$100000\r\n".utf8)
    private let tail = Array("\r\n".utf8)
    private let payload = pattern(100_000)

    private func memory(_ releases: Shared<Int>) -> SharedBytes {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: payload.count, alignment: 1)
        memory.copyBytes(from: payload)
        // unsafe: freed once, by the test's own count.
        nonisolated(unsafe) let lent = memory
        return SharedBytes(unsafe: UnsafeRawBufferPointer(memory)) {
            releases.change { $0 += 1 }
            if releases.value == 1 { lent.deallocate() }
        }
    }

    private func write(_ releases: Shared<Int>, on connection: Connection) -> Promise<Void> {
        let bytes = memory(releases)
        return connection.write { output in
            output.append(head)
            output.append(bytes)
            output.append(tail)
        }
    }

    @Test(arguments: End.allCases, [0, 4, 9, 10, 90_000, 100_008, 100_010])
    func isReleasedOnce(end: End, sent first: Int) throws {
        let releases = Shared(0)
        try withNetwork(turns: 10_000) { net in
            let isFiltered = end == .filtered || end == .filteredInParts
            let (connection, peer) = try isFiltered ? net.filteredPair() : net.pair()
            let whole = head + payload + tail
            let budget = net.limitSends(to: 1 << 40)
            /// Gives the kernel room, and expects that all arrives.
            func expectAll(_ write: Promise<Void>, _ expected: [UInt8]? = nil) throws {
                let count = isFiltered ? whole.count : (expected ?? whole).count
                let got = elsewhere { try peer.receive(exactly: count) }
                budget.remaining = 1 << 40
                try hang(write, timeout: patience)
                let bytes = try hang(got, timeout: patience)
                expect(isFiltered ? bytes.count == count : bytes == expected ?? whole)
            }
            switch end {
            case .sentAtOnce: try expectAll(write(releases, on: connection))
            case .sentInParts, .sentByClose:
                budget.remaining = first
                let write = write(releases, on: connection)
                expect(write.isPending && connection.queuedBytes == whole.count - first)
                let closed = end == .sentByClose ? connection.close() : nil
                try expectAll(write)
                peer.end()
                if let closed { try hang(closed, timeout: patience) }
            case .withdrawn:
                budget.remaining = 0
                let before = connection.write("before")
                let write = write(releases, on: connection)
                let after = connection.write("after")
                expectEqual(releases.value, 0)
                write.cancel()
                expectEqual(releases.value, 1)
                try expectAll(when(fulfilled: before, after).asVoid(), Array("beforeafter".utf8))
            case .withdrawnTooLate:
                budget.remaining = max(first, 1)
                let write = write(releases, on: connection)
                write.cancel()
                expect(write.isPending)
                try expectAll(write)
            case .aborted:
                budget.remaining = first
                let write = write(releases, on: connection)
                connection.abort()
                expectEqual(try rejection(of: write), ECANCELED)
            case .reset:
                budget.remaining = first
                let write = write(releases, on: connection)
                budget.remaining = 1 << 40
                peer.reset()
                expect([EPIPE, ECONNRESET].contains(try rejection(of: write)))
            case .failed:
                budget.remaining = first
                let write = write(releases, on: connection)
                net.kernel.send = { _, _, _ in -Int(ENOBUFS) }
                expectEqual(try rejection(of: write), ENOBUFS)
            case .loopEnds:
                budget.remaining = first
                write(releases, on: connection).ignoringErrors()
                // The end of the test ends the loop.
                peer.end()
                return
            case .refusedAsFull:
                budget.remaining = 0
                connection.writeQueueLimit = 10
                connection.write("before").ignoringErrors()
                expectEqual(code(write(releases, on: connection)), ENOBUFS)
            case .refusedAtTheEnd:
                connection.shutdownWrite().ignoringErrors()
                expectEqual(code(write(releases, on: connection)), EPIPE)
            case .refusedAsClosed:
                connection.abort()
                expectEqual(code(connection.write(memory(releases))), EBADF)
            case .thrown:
                let bytes = memory(releases)
                #expect(throws: Flaw(first)) {
                    _ = try connection.write { output in
                        output.append(bytes)
                        throw Flaw(first)
                    }
                }
            case .filtered, .filteredInParts:
                if end == .filteredInParts { budget.remaining = first }
                let write = write(releases, on: connection)
                // The filter has a copy.
                expectEqual(releases.value, 1)
                try expectAll(write)
            }
            expectEqual(releases.value, 1)
            if end != .refusedAsFull && !isFiltered { expectEqual(connection.heldMemory, 0) }
            connection.abort()
        }
        expectEqual(releases.value, 1)
    }

    /// The bytes before the shared memory, the memory, and the bytes after it.
    @Test(.network) func onePieceAmongOthersTakesOneCall() throws {
        net.ledger.sendsPiecesSingly = false
        let (connection, peer) = try net.pair()
        let before = net.calls(.sendVector)
        let got = elsewhere { try peer.receive(exactly: 100_011) }
        let write = write(Shared(0), on: connection)
        try hang(write, timeout: patience)
        expect(try hang(got, timeout: patience) == head + payload + tail)
        // The kernel may take it in two parts.
        expect((1...3).contains(net.calls(.sendVector) - before) && net.calls(.send) <= 2)
    }

    @Test(.pair) func theOwnerOfWithdrawnMemoryMayWrite() throws {
        let budget = net.limitSends(to: 0)
        // unsafe: everything is on one thread.
        nonisolated(unsafe) let connection = connection
        func start() -> Promise<Void> {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 20_000, alignment: 1)
            nonisolated(unsafe) let lent = memory
            let bytes = SharedBytes(unsafe: UnsafeRawBufferPointer(memory)) {
                lent.deallocate()
                connection.write("x").ignoringErrors()
            }
            return connection.write { output in
                output.append(bytes)
                output.append(bytes[0..<17_000])
            }
        }
        start().cancel()
        expectEqual(connection.queuedBytes, 1)
        budget.remaining = .max
        expectEqual(try hang(elsewhere { try peer.receive() }, timeout: patience), [0x78])
    }

    /// Clients that do not read, and have all asked for the same value: a budget counts it once.
    @Test(.network(turns: 4000)) func aBudgetCountsSharedMemoryOnce() throws {
        net.kernel.send = { _, _, _ in -Int(EAGAIN) }
        let listener = try net.listen()
        let value = SharedBytes([UInt8](repeating: 7, count: 1 << 20))
        let served = listener.serve(ServeOptions(memoryLimit: 3 << 20), onError: { _, _ in }) {
            $0.write { output in
                output.append("head\n")
                output.append(value)
            }
        }
        let clients = try (0..<20).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.activeConnections == 20 })
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expectEqual(listener.evictedConnections, 0)
        // With a separate value each, they take too much.
        let others = try (0..<4).map { _ in try Peer(to: listener.localAddress) }
        expectEqual(others.count, 4)
        for client in clients + others { client.reset() }
        _ = hang(listener.drain(deadline: .zero))
        try hang(served, timeout: patience)
    }

    @Test func aWriterHasItInItsPlace() throws {
        let large = pattern(70_000)
        var writer = ByteWriter()
        try writer.append(prefixedBy: UInt32.self) { output in
            output.append(SharedBytes([1, 2]))
            output.append(SharedBytes(large)[10..<60_010])
            output.append("end")
        }
        expect(writer.bytes == [0, 0, 0xEA, 0x65, 1, 2] + large[10..<60_010] + Array("end".utf8))
        let before = writer.bytes
        #expect(throws: ByteError.limitExceeded(limit: 255)) {
            try writer.append(prefixedBy: UInt8.self) { $0.append(SharedBytes(large)) }
        }
        expect(writer.bytes == before)
    }
}
