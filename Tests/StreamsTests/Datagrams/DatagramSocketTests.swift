@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

let broadcasting = SocketOption(level: SOL_SOCKET, name: SO_BROADCAST)

struct DatagramSocketTests {
    private let server: DatagramSocket
    /// Connected to `server`.
    private let client: DatagramSocket

    init() throws {
        server = try DatagramSocket.bind("127.0.0.1:0")
        client = try DatagramSocket.connect(to: server.localAddress!)
    }

    private let seen = Shared<[[UInt8]]>([])

    /// Keeps the packets that are lent, and ends with a `Flaw` when there are this many.
    private func collect(until count: Int) -> Promise<Void> {
        server.forEachPacket { bytes, _ in
            let packet = [UInt8](bytes)
            seen.change { $0.append(packet) }
            if seen.value.count == count { throw Flaw() }
        }
    }

    /// Receives this number of packets, in as many calls as needed.
    private func receive(_ count: Int, from socket: DatagramSocket) throws -> [Datagram] {
        var packets: [Datagram] = []
        while packets.count < count { packets += try hang(socket.receive(), timeout: patience) }
        return packets
    }

    @Test(.network, arguments: loopbacks) func theyCarryBytesAndAddresses(address: String) throws {
        let server = try DatagramSocket.bind(address)
        let client = try DatagramSocket.bind(address)
        try hang(client.send(Array("question".utf8), to: server.localAddress), timeout: patience)
        let question = try receive(1, from: server)[0]
        expectEqual(question.bytes, Array("question".utf8))
        expectEqual(question.address, client.localAddress)
        expect(!question.isTruncated)
        try hang(server.send(Array("answer".utf8), to: question.address), timeout: patience)
        expectEqual(try receive(1, from: client).map(\.bytes), [Array("answer".utf8)])
        expectEqual(server.peerAddress, nil)
    }

    @Test(.network, arguments: loopbacks) func thePeerMayBeGivenAsText(address: String) throws {
        let server = try DatagramSocket.bind(address)
        let text = "\(server.localAddress!)"
        // So that both can have one port, and no other test takes it in between.
        let shared = SocketSetting.set(.reusePort, to: true)
        let options = [SocketSetting.set(broadcasting, to: 1), shared]
        let client = try DatagramSocket.connect(to: text, packetSize: 9, options: options)
        expectEqual(client.peerAddress, server.localAddress)
        expectEqual(client.packetSize, 9)
        expectEqual(code(server.send([3])), EDESTADDRREQ)
        expect(try client.value(of: broadcasting) == 1)
        try hang(client.send([1, 2]), timeout: patience)
        expectEqual(try receive(1, from: server)[0].address, client.localAddress)
        let source = client.localAddress!
        let other = try DatagramSocket.connect(to: text, from: source, options: [shared])
        expectEqual(other.localAddress, source)
        client.close()
        other.close()
        server.close()
    }

    @Test(.network) func manyComeWithOneCall() throws {
        let packets = (0..<40).map { Datagram([UInt8($0)]) }
        expectEqual(try hang(client.send(packets), timeout: patience), 40)
        expectEqual(net.calls(.sendMessages), 2)
        let first = try hang(server.receive(), timeout: patience)
        let second = try hang(server.receive(upTo: 3), timeout: patience)
        let rest = try hang(server.receive(), timeout: patience)
        expect((first.count, second.count, rest.count) == (32, 3, 5))
        expectEqual((first + second + rest).map(\.bytes), packets.map(\.bytes))
        expectEqual(net.calls(.receiveMessages), 3)
    }

    @Test(.network) func emptyOnesArriveAndOneThatIsTooLongIsCutAndMarked() throws {
        let server = try DatagramSocket.bind("127.0.0.1:0", packetSize: 10)
        let client = try DatagramSocket.connect(to: server.localAddress!)
        try hang(client.send([UInt8]()), timeout: patience)
        expectEqual(try hang(client.send([11, 10, 0].map { Datagram(pattern($0)) }), timeout: patience), 3)
        expectEqual(try hang(client.send([Datagram]()), timeout: patience), 0)
        let packets = try receive(4, from: server)
        expectEqual(packets.map(\.isTruncated), [false, true, false, false])
        expectEqual(packets.map(\.bytes), [[], pattern(10), pattern(10), []])
    }

    @Test(.network) func oneThatTheKernelDoesNotTakeIsRefusedAlone() throws {
        expectEqual(code(client.send(pattern(70_000))), EMSGSIZE)
        expectEqual(code(client.send([Datagram(pattern(70_000)), Datagram([1])])), EMSGSIZE)
        let some = try hang(client.send([Datagram([1]), Datagram(pattern(70_000)), Datagram([2])]), timeout: patience)
        expectEqual(some, 1)
        try hang(client.send([3]), timeout: patience)
        expectEqual(try receive(2, from: server).map(\.bytes), [[1], [3]])
    }

    @Test(.network) func aMissingReceiverIsAnOutcomeAndNotTheEnd() throws {
        let address = server.localAddress!
        server.close()
        let waiting = client.receive()
        try hang(client.send([1]), timeout: patience)
        expectEqual(try rejection(of: waiting), ECONNREFUSED)
        expect("\(waiting.error!)".contains("\(address)"))
        let revived = try DatagramSocket.bind(address)
        try hang(client.send([2]), timeout: patience)
        expectEqual(try receive(1, from: revived).map(\.bytes), [[2]])
    }

    @Test(.network) func sendsThatWaitAreBoundedAndCanBeTakenBack() throws {
        let real = net.kernel.sendMessages
        net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
        let both = client.send([Datagram([254]), Datagram([255])])
        let sends = (0..<1023).map { client.send([UInt8(truncatingIfNeeded: $0)]) }
        expectEqual(code(client.send([0])), ENOBUFS)
        for send in sends.dropFirst(2) { send.cancel() }
        expect(both.isPending && sends[0].isPending)
        net.kernel.sendMessages = real
        try hang(sends[1], timeout: patience)
        expect(both.settledValue == 2 && sends[0].isFulfilled)
        expectEqual(try receive(4, from: server).map(\.bytes), [[254], [255], [0], [1]])
        expect(sends.dropFirst(2).allSatisfy { $0.error?.isCancelled == true })
    }

    @Test(.network) func eachPacketIsLentInItsOrder() throws {
        var seen: [[UInt8]] = []
        var origins: Set<SocketAddress?> = []
        let done = server.forEachPacket { bytes, origin in
            seen.append([UInt8](bytes))
            origins.insert(origin.address)
            if bytes.byteCount == 0 { throw Flaw(1) }
        }
        let packets = (1...50).map { Datagram(pattern($0)) }
        expectEqual(try hang(client.send(packets + [Datagram([UInt8]())]), timeout: patience), 51)
        #expect(throws: Flaw(1)) { try hang(done, timeout: patience) }
        expectEqual(seen, packets.map(\.bytes) + [[]])
        expectEqual(origins, [client.localAddress])
        expectEqual(net.calls(.receiveMessages), 2)
    }

    @Test(.network) func whatCameWithTheLastIsTheNextCalls() throws {
        expectEqual(try hang(client.send((0..<6).map { Datagram([UInt8($0)]) }), timeout: patience), 6)
        #expect(throws: Flaw()) { try hang(collect(until: 2), timeout: patience) }
        expectEqual(try hang(server.receive(upTo: 1), timeout: patience).map(\.bytes), [[2]])
        #expect(throws: Flaw()) { try hang(collect(until: 4), timeout: patience) }
        expectEqual(try hang(server.receive(), timeout: patience).map(\.bytes), [[5]])
        expectEqual(seen.value, [[0], [1], [3], [4]])
    }

    @Test(.network) func readinessThatIsOutOfDateOverwritesNothing() throws {
        expectEqual(try hang(client.send((0..<3).map { Datagram([UInt8($0)]) }), timeout: patience), 3)
        #expect(throws: Flaw()) { try hang(collect(until: 1), timeout: patience) }
        try hang(client.send([3]), timeout: patience)
        let rest = collect(until: 4)
        _ = server.descriptorIsReady(.reading)
        #expect(throws: Flaw()) { try hang(rest, timeout: patience) }
        expectEqual(seen.value, [[0], [1], [2], [3]])
    }

    @Test(.network) func aBodyThatClosesTheSocketSeesNoMore() throws {
        expectEqual(try hang(client.send((0..<6).map { Datagram([UInt8($0)]) }), timeout: patience), 6)
        var seen = 0
        let done = server.forEachPacket { _, _ in
            seen += 1
            server.close()
        }
        expectEqual(try rejection(of: done), ECANCELED)
        expectEqual(seen, 1)
    }

    @Test(.network) func aBodyThatTurnsTheLoopKeepsItsBytes() throws {
        var seen: [[UInt8]] = []
        let done = server.forEachPacket { bytes, _ in
            if seen.isEmpty { try hang(client.send(pattern(100, from: 50)), timeout: patience) }
            net.settle(.milliseconds(1))
            seen.append([UInt8](bytes))
            if seen.count == 3 { throw Flaw() }
        }
        expectEqual(
            try hang(client.send([Datagram(pattern(100)), Datagram(pattern(100, from: 7))]), timeout: patience), 2
        )
        #expect(throws: Flaw()) { try hang(done, timeout: patience) }
        expectEqual(seen, [pattern(100), pattern(100, from: 7), pattern(100, from: 50)])
    }

    @Test(.network) func whatIsLentMayBeSentAsItIs() throws {
        let echoing = server.forEachPacket { bytes, origin in
            server.send(bytes, to: origin.address).cauterize()
        }
        let packets = [pattern(1500), [], pattern(20, from: 3)]
        expectEqual(try hang(client.send(packets.map { Datagram($0) }), timeout: patience), 3)
        expectEqual(try receive(3, from: client).map(\.bytes), packets)
        echoing.cancel()
    }

    @Test(.network) func whatIsLentIsCopiedIfItHasToWait() throws {
        // More than one call receives: the second call's replace the first's.
        let expected = (1...40).map { pattern($0) }
        expectEqual(try hang(client.send(expected.map { Datagram($0) }), timeout: patience), 40)
        let real = net.kernel.sendMessages
        net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
        var sends: [Promise<Void>] = []
        let waiting = server.forEachPacket { bytes, origin in
            sends.append(server.send(bytes, to: origin.address))
        }
        try net.loop.run(until: { sends.count == expected.count })
        expectEqual(sends.filter(\.isPending).count, 40)
        net.kernel.sendMessages = real
        expectEqual(try receive(40, from: client).map(\.bytes), expected)
        expectEqual(sends.filter(\.isFulfilled).count, 40)
        waiting.cancel()
    }

    @Test(.network, arguments: [false, true], [false, true])
    func theErrorOfAnEarlierPacketIsReported(isConnected: Bool, isTaken: Bool) throws {
        let real = net.kernel.receiveMessages
        var answers = [ECONNREFUSED, ENOBUFS, EHOSTUNREACH]
        net.kernel.receiveMessages = { answers.popLast().map { -Int($0) } ?? real($0, $1, $2) }
        let (socket, other) = isConnected ? (client, server) : (server, client)
        var errors: [SystemError] = []
        let done = socket.forEachPacket(onError: isTaken ? { errors.append($0) } : nil) { _, _ in throw Flaw() }
        try hang(other.send([1], to: isConnected ? socket.localAddress : nil), timeout: patience)
        if isConnected && !isTaken {
            expectEqual(try rejection(of: done), EHOSTUNREACH)
            expect((done.error as? SystemError)?.leavesSocketUsable == true)
            answers = []
            let again = socket.forEachPacket { _, _ in throw Flaw() }
            #expect(throws: Flaw()) { try hang(again, timeout: patience) }
        } else {
            #expect(throws: Flaw()) { try hang(done, timeout: patience) }
        }
        expectEqual(errors.map(\.code), isTaken ? [EHOSTUNREACH, ECONNREFUSED] : [])
        // What the closure throws ends the iteration.
        answers = [ECONNREFUSED]
        let ended = socket.forEachPacket(onError: { _ in throw Flaw(2) }) { _, _ in }
        try hang(other.send([1], to: isConnected ? socket.localAddress : nil), timeout: patience)
        #expect(throws: Flaw(2)) { try hang(ended, timeout: patience) }
    }

    @Test(.network, arguments: [ENOTSOCK, EBADF]) func anErrorOfTheSocketItselfEndsTheIteration(errno: CInt) throws {
        net.kernel.receiveMessages = { _, _, _ in -Int(errno) }
        let broken = server.forEachPacket(onError: { _ in Issue.record("it is final") }) { _, _ in }
        try hang(client.send([1]), timeout: patience)
        expectEqual(try rejection(of: broken), errno)
        expect((broken.error as? SystemError)?.leavesSocketUsable == false)
    }

    @Test(.network) func anErrorSaysWhetherTheSocketLivesOn() throws {
        let waiting = server.receive()
        let tooLong = client.send(pattern(70_000))
        for error in [server.receive().error, server.receive(upTo: 0).error, tooLong.error] {
            expect((error as? SystemError)?.leavesSocketUsable == true)
        }
        server.close()
        for error in [waiting.error, server.receive().error, server.send([1]).error] {
            expect((error as? SystemError)?.leavesSocketUsable == false)
        }
    }

    /// Posts and sends meet the error, as well as the reception.
    @Test(.network) func whoLendsLearnsThatAPortIsDead() throws {
        server.close()
        var errors: [SystemError] = []
        let done = client.forEachPacket(onError: {
            errors.append($0)
            if errors.count == 3 { throw Flaw() }
        }) { _, _ in }
        let posting = net.loop.schedule(every: .milliseconds(1)) { client.post([1]) }
        #expect(throws: Flaw()) { try hang(done, timeout: patience) }
        posting.cancel()
        expect(errors.allSatisfy { $0.code == ECONNREFUSED && $0.leavesSocketUsable })
        expectEqual(client.lostPosts, 0)
    }

    /// Sends that the kernel takes at once are successes too.
    @Test(.network(turns: 2000)) func aClientOfADeadPortReceivesWithoutAPauseWhileItSends() throws {
        server.close()
        var sends = 0
        let lines = try logged {
            let all = client.forEachPacket(onError: { _ in }) { _, _ in }
            for number in 0..<600 {
                client.send([UInt8(number & 1)]).done { sends += 1 }.ignoringErrors()
                try net.loop.turn(.poll)
            }
            all.cancel()
        }
        expectEqual(lines, [])
        expect(sends > 256, "\(sends)")
    }
}
