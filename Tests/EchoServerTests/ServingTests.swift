@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ServingTests {
    /// From 20 clients at once, each of which half-closes and reads on.
    @Test(arguments: [false, true]) func aMegabyteOfEachComesBackWhole(isUnix: Bool) throws {
        let folder = Folder()
        let server = try isUnix ? .serving("--listen", "unix:\(folder["echo.sock"])") : ServerProcess.serving()
        let clients = try (0..<20).map { _ in try Peer(to: server.address) }
        let (sent, chunk) = (randomBytes(1 << 20), 65536)
        var received = clients.map { _ in [UInt8]() }
        for start in stride(from: 0, to: sent.count, by: chunk) {
            for client in clients { try client.send(Array(sent[start..<start + chunk])) }
            // At most two chunks are under way: more may not fit into the buffers of a Unix socket, whose size is what
            // the kernel allocates, and the server stops reading while it cannot write.
            guard start >= chunk else { continue }
            for (index, client) in clients.enumerated() { received[index] += try client.receive(exactly: chunk) }
        }
        for (index, client) in clients.enumerated() {
            client.end()
            received[index] += try client.readToEnd()
            expect(received[index] == sent)
        }
        expect(try server.terminate().hasPrefix("totals: 0 open, 20 connections (peak 20, 0 failed), 20971520 bytes, "))
    }

    @Test func aClientThatSendsAndNeverReadsIsBoundedAndHarmsNoOther() throws {
        let server = try ServerProcess.serving("--drain-timeout", "0")
        let bystander = try Peer(to: server.address)
        expect(try bystander.echoes("before"))
        let before = residentBytes(of: "\(server.pid)")

        let stuck = try (0..<4).map { _ in try Peer(to: server.address, receiveBuffer: 65536) }
        let chunk = randomBytes(1 << 20)
        var taken = 0
        for client in stuck {
            while taken < 1 << 30 {
                let count = try client.send(chunk, patience: 100)
                taken += count
                if count < chunk.count && client.hasStalled(server) { break }
            }
        }
        // The kernel buffers the bytes that it has taken; the server has a chunk of each.
        expect(taken < 1 << 30)
        expect(isSanitized || residentBytes(of: "\(server.pid)") - before < 4 << 20)
        for number in 0..<50 { expect(try bystander.echoes("meanwhile \(number)")) }
        let turns = try number(before: "turns", in: server.statistics())
        expect(!stuck[0].waits(for: POLLOUT, 50))
        expect(try number(before: "turns", in: server.statistics()) - turns <= 10, "the server spins")
        try server.terminate()
    }

    @Test func aResetInTheMiddleEndsOnlyThatConnection() throws {
        let server = try ServerProcess.serving()
        let bystander = try Peer(to: server.address)
        for _ in 0..<10 {
            let client = try Peer(to: server.address)
            try client.send(randomBytes(300_000), patience: 50)
            _ = try client.receive(exactly: 1000)
            client.reset()
        }
        expect(try bystander.echoes("still here"))
        try bystander.leave()
        let totals = try server.terminate()
        expect(totals.hasPrefix("totals: 0 open, 11 connections ("))
        expectEqual(try number(before: "failed", in: totals), 10)
    }
}
