// Made by .ci/snippets.py from docs/guides/scaling.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/scaling.md: Many loops
extension Snippets {
    static func scaling1() throws {
        let group = try LoopGroup(loops: 2, name: "server")
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(on: group, ServeOptions(maxConnections: 10_000)) { connection in
            connection.forEachChunk { connection.write($0) }
        }
        let echo = connect(to: listener.localAddress).then { connection in
            connection.write("over there").then { connection.read(exactly: 10) }.ensure { connection.close() }
        }
        let bytes = try hang(echo)
        assert(bytes == Array("over there".utf8))
        hang(listener.drain(deadline: .seconds(10)))
        try hang(served)
        group.stop()
        group.join()
        _ = group
        _ = listener
        _ = served
        _ = echo
        _ = bytes
    }
}

// docs/guides/scaling.md: What each loop has
extension Snippets {
    static func scaling2() throws {
        final class Cache {
            private var pages: [String: String] = [:]
            private(set) var hits = 0

            func page(_ path: String) -> String {
                if let known = pages[path] {
                    hits += 1
                    return known
                }
                let page = "the page of \(path)"
                pages[path] = page
                return page
            }
        }

        let caches = LoopLocal { Cache() }
        let group = try LoopGroup(loops: 2, name: "server")
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(on: group, ServeOptions(balancing: .roundRobin)) { connection in
            let cache = caches.value(for: connection)
            return connection.forEachLine { path in connection.write(cache.page(path) + "\n") }
        }

        func ask(_ path: String) -> Promise<String?> {
            connect(to: listener.localAddress).then { client in
                client.write(path + "\n").then { client.readLine() }.ensure { client.close() }
            }
        }

        for _ in 1...4 {
            let page = try hang(ask("/"))
            assert(page == "the page of /")
        }

        let hits = group.collect(caches) { cache in cache.hits }            // on each loop's thread
        let counts = hang(hits).compactMap { try? $0.get() }
        assert(counts == [1, 1])
        listener.close()
        try hang(served)
        group.stop()
        group.join()
        _ = caches
        _ = group
        _ = listener
        _ = served
        _ = hits
        _ = counts
    }
}

// docs/guides/scaling.md: Handing connections over
extension Snippets {
    static func scaling3() throws {
        let group = try LoopGroup(loops: 2, name: "server")

        @Sendable func serveThere(_ descriptor: CInt, _ lease: LoopGroup.Lease) {
            do {
                let connection = try Connection(adopting: descriptor)
                connection.forEachChunk { connection.write($0) }.ensure {
                    connection.close()
                    withExtendedLifetime(lease) {}
                }.cauterize()
            } catch {
                Glibc.close(descriptor)
            }
        }

        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve { connection in
            let lease = group.lease()
            let descriptor = try connection.detach()
            if !lease.remote.submit({ serveThere(descriptor, lease) }) { Glibc.close(descriptor) }
            return Promise<Void>.value
        }
        let echo = connect(to: listener.localAddress).then { connection in
            connection.write("over there").then { connection.read(exactly: 10) }.ensure { connection.close() }
        }
        let bytes = try hang(echo)
        assert(bytes == Array("over there".utf8))
        listener.close()
        try hang(served)
        group.stop()
        group.join()
        _ = group
        _ = listener
        _ = served
        _ = echo
        _ = bytes
    }
}
