// Made by .ci/snippets.py from docs/guides/serving.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/serving.md: Listening and serving
extension Snippets {
    static func serving1() throws {
        let listener = try Listener.bind("127.0.0.1:0", backlog: 1024)
        let options = ServeOptions(
            maxConnections: 10_000, maxLingering: 1024, memoryLimit: 1 << 30, balancing: .leastConnections, stopSignals: [SIGTERM],
            drainTimeout: .seconds(10), onSignal: { print("signal \($0)") }, prepare: nil, cancelsWhenPeerGone: true)
        let served = listener.serve(options, onError: { error, connection in logger.warning("\(connection): \(error)") }) { connection in
            connection.forEachChunk { connection.write($0) }
        }
        listener.close()
        try hang(served)                                       // the last connection is done
        _ = listener
        _ = options
        _ = served
    }
}

// docs/guides/serving.md: Draining
extension Snippets {
    static func serving2() throws {
        func session(_ connection: Connection) -> Promise<Void> {
            connection.forEachLine { line -> Promise<Void> in
                let answer = after(.milliseconds(20)).then { connection.write("answer to \(line)\n") }
                connection.deferDrain(until: answer).catch { error in print(error) }
                return .value                                  // the next line need not wait
            }
        }
    }
}

// docs/guides/serving.md: Draining
extension Snippets {
    static func serving3() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve { connection in connection.forEachChunk { connection.write($0) } }
        let client = try hang(connect(to: listener.localAddress))
        try hang(client.write("x").then { client.read(exactly: 1) })
        let result = hang(listener.drain(deadline: .seconds(10)))
        try hang(served)
        assert(result.idle == 1 && result.finished == 0 && result.aborted == 0)
        client.close()
        _ = listener
        _ = served
        _ = client
        _ = result
    }
}

// docs/guides/serving.md: Idle time-outs
extension Snippets {
    static func serving4() throws {
        func answer(_ connection: Connection) -> Promise<Void> {
            connection.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
            return connection.forEachLine { line in connection.write("\(line)\n") }.recover { error -> Promise<Void> in
                guard case StreamError.timedOut(let got) = error else { throw error }
                return got == 0 ? .value : connection.write("408 too slow\n")
            }
        }
    }
}
