@testable import PromisesTestSupport

struct ForwardTests {
    @Test(.network(turns: 4000)) func allThatComesGoesOnAndIsCounted() throws {
        let (client, near) = try Connection.pair()
        let (reader, writer) = try Connection.pipe()
        let large = pattern(3_000_000)
        let moved = pipe(from: near, to: writer, endingSink: true)
        let write = client.write(large)
        client.shutdownWrite().cauterize()
        expectEqual(try hang(readToEnd(reader), timeout: patience), large)
        expectEqual(try hang(moved, timeout: patience), large.count)
        try hang(write, timeout: patience)
        expect(!near.isClosed && !writer.isClosed)
    }

    @Test(.network(turns: 2000)) func theSinksSlownessIsTheSources() throws {
        let (client, near) = try Connection.pair()
        let (reader, writer) = try Connection.pipe()
        let moved = pipe(from: near, to: writer)
        client.writeQueueLimit = .max
        let write = client.write(pattern(4_000_000))
        net.settle()
        expect(write.isPending && writer.queuedBytes <= 65536)
        let calls = net.calls(.receive)
        net.settle()
        expectEqual(net.calls(.receive), calls)
        let all = reader.read(exactly: 4_000_000)
        expectEqual(try hang(all, timeout: patience), pattern(4_000_000))
        client.shutdownWrite().cauterize()
        expectEqual(try hang(moved, timeout: patience), 4_000_000)
        try hang(writer.write("x"), timeout: patience)
    }

    @Test(.network) func whatWasReadBeforeGoesFirst() throws {
        let (client, near) = try Connection.pair()
        let (c, d) = try Connection.pair()
        try hang(client.write("header\nbody"), timeout: patience)
        expectEqual(try hang(near.readLine(), timeout: patience), "header")
        let moved = pipe(from: near, to: c)
        client.close()
        expectEqual(try hang(d.read(exactly: 4), timeout: patience), Array("body".utf8))
        expectEqual(try hang(moved, timeout: patience), 4)
    }

    @Test(.network) func aSinkThatFailsRejectsAndTheSourceIsFree() throws {
        let (client, near) = try Connection.pair()
        let (reader, writer) = try Connection.pipe()
        let moved = pipe(from: near, to: writer)
        reader.abort()
        try hang(client.write("lost"), timeout: patience)
        expectEqual(try rejection(of: moved), EPIPE)
        try hang(client.write("kept"), timeout: patience)
        expectEqual(try hang(near.receive(), timeout: patience), Array("kept".utf8))
    }

    @Test(.network) func cancelledItStops() throws {
        let (client, near) = try Connection.pair()
        let (c, d) = try Connection.pair()
        let moved = pipe(from: near, to: c)
        try hang(client.write("one"), timeout: patience)
        expectEqual(try hang(d.receive(), timeout: patience), Array("one".utf8))
        moved.cancel()
        try hang(client.write("two"), timeout: patience)
        expectEqual(try hang(near.receive(), timeout: patience), Array("two".utf8))
    }
}
