@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Datagrams without promises.
struct DatagramPostTests {
    private let server: DatagramSocket
    /// Connected to `server`.
    private let client: DatagramSocket

    init() throws {
        server = try DatagramSocket.bind("127.0.0.1:0")
        client = try DatagramSocket.connect(to: server.localAddress!)
    }

    /// Receives this number of packets, in as many calls as needed.
    private func receive(_ count: Int) throws -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while packets.count < count { packets += try hang(server.receive(), timeout: patience).map(\.bytes) }
        return packets
    }

    /// Calls `body` in a turn of the loop, at whose end the posts leave.
    private func inTurn(_ body: @escaping () -> Void) throws {
        net.loop.enqueue(body)
        try net.loop.turn(.poll)
    }

    @Test(.network) func thoseOfATurnLeaveTogetherInTheOrderOfTheCalls() throws {
        var during = -1
        try inTurn {
            for number in 0..<20 { client.post([UInt8(number)]) }
            for number in 20..<31 { client.post([UInt8(number)].span.bytes) }
            during = net.calls(.sendMessages)
        }
        expectEqual(during, 0)
        expectEqual(net.calls(.sendMessages), 1)
        expectEqual(try receive(31), (0..<31).map { [$0] })
        // The batch is full; a send leaves after the posts before it.
        try inTurn {
            for number in 0..<33 { client.post([UInt8(number)]) }
            client.send([33]).cauterize()
            client.post([34])
        }
        expectEqual(net.calls(.sendMessages), 5)
        expectEqual(try receive(35), (0..<35).map { [$0] })
        // Between turns nothing else would send it.
        client.post([1])
        expectEqual(net.calls(.sendMessages), 6)
        expectEqual(try receive(1), [[1]])
        expectEqual(client.lostPosts, 0)
    }

    /// How a socket ends that has gathered datagrams.
    enum Ending: CaseIterable { case close, loop }

    @Test(.network, arguments: Ending.allCases) func theEndSendsWhatIsGathered(ending: Ending) throws {
        if ending == .close {
            try inTurn {
                client.post([1])
                client.close()
            }
            expect(!client.post([2]))
            expectEqual(client.lostPosts, 1)
        } else {
            let address = server.localAddress!
            try EventLoop.withLoop { loop in
                let other = try DatagramSocket.connect(to: address)
                loop.enqueue {
                    other.post([1])
                    loop.stop()
                }
                try loop.turn(.poll)
            }
        }
        expectEqual(try receive(1), [[1]])
    }

    @Test(.network) func thoseThatWaitForTheKernelAreBoundedAndTheRestIsCounted() throws {
        let real = net.kernel.sendMessages
        net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
        var taken = 0
        try inTurn { for number in 0..<1100 where client.post([UInt8(number & 255)]) { taken += 1 } }
        expectEqual(taken, 1024)
        expectEqual(client.lostPosts, 76)
        net.kernel.sendMessages = real
        try net.loop.run(until: { client.waitingPosts == 0 })
        expect(client.post([7]))
        net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
        try inTurn { for _ in 0..<3 { client.post([8]) } }
        client.close()
        expectEqual(client.lostPosts, 79)
    }

    /// The error is of that datagram, or of an earlier one.
    @Test(.network, arguments: [[2], [0, 1], [0, 33], [39], Array(0..<40)], [EMSGSIZE, ECONNREFUSED])
    func oneThatTheKernelRefusesIsTriedOnceMoreAndPassedOver(refused: [Int], errno: CInt) throws {
        let real = net.kernel.sendMessages
        // The next datagram, and how often it has been refused.
        var (position, refusals) = (0, 0)
        net.kernel.sendMessages = { fd, messages, count in
            // That of an earlier one is reported once.
            if refused.contains(position), errno == EMSGSIZE || refusals == 0 {
                refusals += 1
                if refusals == 2 { (position, refusals) = (position + 1, 0) }
                return -Int(errno)
            }
            refusals = 0
            let next = refused.first { $0 > position } ?? .max
            let sent = real(fd, messages, min(count, next - position))
            if sent > 0 { position += sent }
            return sent
        }
        var reports = 0
        let reading = client.forEachPacket(onError: { _ in reports += 1 }) { _, _ in }
        try inTurn { for number in 0..<40 { client.post([UInt8(number)]) } }
        let arriving = (0..<40).filter { errno == ECONNREFUSED || !refused.contains($0) }
        try net.loop.run(until: { client.waitingPosts == 0 })
        if !arriving.isEmpty { expectEqual(try receive(arriving.count), arriving.map { [UInt8($0)] }) }
        expectEqual(client.lostPosts, errno == EMSGSIZE ? refused.count : 0)
        try net.loop.turn(.poll)
        expectEqual(reports, errno == ECONNREFUSED ? refused.count : 0)
        reading.cancel()
    }
}
