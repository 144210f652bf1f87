// Made by .ci/snippets.py from docs/guides/embedding.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/embedding.md: Your loop drives this one
extension Snippets {
    static func embedding1() throws {
        func turnAll(_ loop: EventLoop) throws(SystemError) {
            repeat { try loop.turn(.poll) } while loop.isReady
        }
    }
}

// docs/guides/embedding.md: poll(2)
extension Snippets {
    static func embedding2() throws {
        try EventLoop.withLoop { loop in
            var isDone = false
            after(.milliseconds(2)).done { isDone = true }
            var entries = [pollfd(fd: try loop.fileDescriptor, events: Int16(POLLIN), revents: 0)]  // and those of yours
            try turnAll(loop)
            while !isDone {
                poll(&entries, nfds_t(entries.count), -1)
                if entries[0].revents != 0 { try turnAll(loop) }
            }
            assert(isDone)
        }
    }
}

// docs/guides/embedding.md: This loop drives yours
extension Snippets {
    static func embedding3() throws {
        let outer = EventLoop.current
        try EventLoop.withLoop { inner in                      // stands for a loop of another library
            var isHeard = false
            let timer = inner.schedule(after: .milliseconds(2)) { isHeard = true }
            let carrier = try outer.watch(try inner.fileDescriptor, for: .reading) { _ in try? turnAll(inner) }
            try turnAll(inner)
            try outer.run(until: { isHeard })
            assert(!timer.isActive)
            carrier.cancel()
        }
        _ = outer
    }
}

// docs/guides/embedding.md: A thread each
extension Snippets {
    static func embedding4() throws {
        let (stop, stopHealth) = Guarantee<Void>.pending()
        let health = try EventLoop.spawn(name: "health")
        let (address, drained) = try hang(Promise(on: health) { () throws -> (SocketAddress, Guarantee<DrainResult>) in
            let listener = try Listener.bind("127.0.0.1:0")                  // usually a port of your choice
            listener.serve { connection in
                connection.idleTimeout = .seconds(5)
                return connection.read(until: "\r\n\r\n", limit: 8192).then { _ in
                    connection.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n")
                }
            }.cauterize()
            return (listener.localAddress, stop.then { listener.drain(deadline: .seconds(5)) })
        })
        let answer = connect(to: address).then { monitor in
            monitor.write("GET /health HTTP/1.1\r\n\r\n").then { monitor.readLine() }.ensure { monitor.close() }
        }
        let status = try hang(answer)
        assert(status?.hasPrefix("HTTP/1.1 200") == true)

        stopHealth(())
        print(hang(drained))                                                 // how its connections ended
        health.stop()
        hang(health.ended)
        _ = stop
        _ = stopHealth
        _ = health
        _ = address
        _ = drained
        _ = answer
        _ = status
    }
}
