// Made by .ci/snippets.py from docs/scaling.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/scaling.md: A listener each
extension Snippets {
    static func scaling1() throws {
        @Sendable func serveHere() {
            do {
                let listener = try Listener.bind("0.0.0.0:7000", options: [.set(.reusePort, to: true)])
                listener.serve { connection in connection.forEachChunk { connection.write($0) } }.cauterize()
            } catch { logger.error("\(error)") }
        }

        for _ in 1..<max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1) {
            try EventLoop.spawn(name: "server").submit(serveHere)
        }
        serveHere()
        try EventLoop.current.run()
    }
}

// docs/scaling.md: One listener that hands over
extension Snippets {
    static func scaling2() throws {
        let worker = try EventLoop.spawn(name: "worker")

        @Sendable func serveThere(_ descriptor: CInt) {
            do {
                let connection = try Connection(adopting: descriptor)
                connection.forEachChunk { connection.write($0) }.ensure { connection.close() }.cauterize()
            } catch {
                Glibc.close(descriptor)
            }
        }

        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve { connection in
            let descriptor = try connection.detach()
            if !worker.submit({ serveThere(descriptor) }) { Glibc.close(descriptor) }
            return Promise<Void>.value
        }
        let echo = connect(to: listener.localAddress).then { connection in
            connection.write("over there").then { connection.read(exactly: 10) }.ensure { connection.close() }
        }
        let bytes = try hang(echo)
        assert(bytes == Array("over there".utf8))
        listener.close()
        try hang(served)
        worker.stop()
        worker.join()
        _ = worker
        _ = listener
        _ = served
        _ = echo
        _ = bytes
    }
}

// docs/scaling.md: Many processes
extension Snippets {
    static func scaling3() throws {
        let listener = try Listener.inherited(named: "echo") ?? Listener.bind("127.0.0.1:0")
        try ServiceManager.notify(.ready)
        listener.close()
        _ = listener
    }
}
