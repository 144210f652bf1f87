@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ReadTests {
    @Test(.network(turns: 4000)) func muchAndLittleByTurns() throws {
        let (a, b) = try Connection.pair()
        var place = 0
        for (number, count) in [10, 5000, 70_000, 4095, 4096, 1, 20_000, 65_536, 8192, 100_000, 3].enumerated() {
            let limit = number % 2 == 0 ? 60_000 : .max
            let write = b.write(pattern(count, from: place))
            var rest = count
            while rest > 0 {
                guard case .bytes(let bytes) = try hang(a.read(upTo: limit), timeout: patience) else {
                    Issue.record("it has ended")
                    return
                }
                expectEqual(bytes, pattern(bytes.count, from: place))
                expect(bytes.count <= min(limit, 65_536) && bytes.capacity < 2 * max(bytes.count, 65_536))
                place += bytes.count
                rest -= bytes.count
            }
            try hang(write, timeout: patience)
        }
        // Large reads: first nothing, then little, then the end.
        expect(try hang(b.write(pattern(5000)), timeout: patience) == ())
        _ = try hang(a.read(), timeout: patience)
        let last = a.read()
        net.kernel.receive = { [real = net.kernel] fd, buffer, count in
            net.kernel = real
            return -Int(EAGAIN)
        }
        try hang(b.write("x"), timeout: patience)
        expectEqual(try hang(last, timeout: patience), .bytes([0x78]))
        b.close()
        expectEqual(try hang(a.read(), timeout: patience), .end)
    }

    @Test(.pair) func nothingIsReadBeforeItIsAskedFor() throws {
        try net.deliver("early", from: peer)
        expect(net.turns { net.settle() } <= 4)
        expectEqual(net.calls(.receive), 0)
        expectEqual(try hang(connection.read(), timeout: patience), .bytes(Array("early".utf8)))
        expectEqual(net.calls(.receive), 1)
    }

    @Test(.pair) func anUrgentByteIsPassedOverAndDoesNotSpin() throws {
        let read = connection.read()
        var urgent = UInt8(1)
        expectEqual(send(peer.fd, &urgent, 1, CInt(MSG_OOB)), 1)
        expect(net.turns { net.settle() } <= 5)
        expect(read.isPending)
        try peer.send("ordinary")
        expectEqual(try hang(read, timeout: patience), .bytes(Array("ordinary".utf8)))
    }
}
