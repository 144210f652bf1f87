// Made by .ci/snippets.py from docs/guides/networking.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking1() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let connecting = connect(to: listener.localAddress, timeout: .seconds(5))
        let connection = try hang(connecting)
        assert(connection.peerAddress == listener.localAddress)
        connection.close()
        _ = listener
        _ = connecting
        _ = connection
    }
}

// docs/guides/networking.md: Connecting
extension Snippets {
    static func networking2() throws {
        final class KnownNames { var entries: [String: (addresses: [SocketAddress], end: LoopInstant)] = [:] }

        struct CachedLookup: NameLookup {
            private let known = LoopLocal { KnownNames() }

            func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
                let (key, now) = ("\(host):\(port)", EventLoop.current.now)
                if let entry = known.withValue({ $0.entries[key] }), entry.end > now { return .value(entry.addresses) }
                return SystemNameLookup.shared.addresses(of: host, port: port).get { addresses in
                    known.withValue { $0.entries[key] = (addresses, now + .seconds(60)) }
                }
            }
        }
    }
}

// docs/guides/networking.md: A pool of resources
extension Snippets {
    static func networking3() throws {
        let server = try Listener.bind("127.0.0.1:0")
        let served = server.serve { connection in connection.forEachLine { connection.write($0.uppercased() + "\n") } }
        let pool = Pool<Connection>(to: .address(server.localAddress), limits: PoolLimits(perKey: 2))
        func ask(_ line: String) -> Promise<String?> {
            pool.with { connection in connection.write(line + "\n").then { connection.readLine() } }
        }
        let answers = try hang(when(fulfilled: ["a", "b", "c"].map(ask)))
        assert(answers == ["A", "B", "C"] && pool.counts.open == 2 && pool.counts.idle == 2)
        let drained = hang(pool.drain(deadline: .seconds(10)))
        assert(drained.finished == 0 && pool.counts.open == 0)  // the three had finished before
        server.close()
        try hang(served)
        _ = server
        _ = served
        _ = pool
        _ = answers
        _ = drained
    }
}

// docs/guides/networking.md: Options
extension Snippets {
    static func networking4() throws {
        let listener = try Listener.bind("127.0.0.1:0", options: [.set(.keepAlive, to: true)])
        let connection = try hang(connect(to: listener.localAddress, options: [.set(.sendBuffer, to: 65_536)]))
        try connection.set(.keepAliveIdle, to: .seconds(30))
        let (idle, buffer) = (try connection.value(of: .keepAliveIdle), try connection.value(of: .sendBuffer))
        assert(idle == .seconds(30) && buffer == 131_072)      // Linux doubles it, for its own bookkeeping
        connection.close()
        _ = listener
        _ = connection
        _ = idle
        _ = buffer
    }
}

// docs/guides/networking.md: UDP
extension Snippets {
    static func networking5() throws {
        let socket = try DatagramSocket.bind("127.0.0.1:0")
        let answering = socket.forEachPacket { bytes, origin in
            let reply = bytes.withUnsafeBytes { Array($0.reversed()) }
            socket.send(reply, to: origin.address).cauterize()       // the sender decides whether that is possible
        }
        let asker = try DatagramSocket.connect(to: socket.localAddress!)
        let answer = retry(maxAttempts: 3) { _ in                // datagrams may be lost
            asker.send("ping".utf8).then { asker.receive().timeout(.seconds(1)) }
        }
        let packets = try hang(answer)
        assert(packets.map(\.bytes) == [Array("gnip".utf8)])
        answering.cancel()
        socket.close()
        asker.close()
        _ = socket
        _ = answering
        _ = asker
        _ = answer
        _ = packets
    }
}
