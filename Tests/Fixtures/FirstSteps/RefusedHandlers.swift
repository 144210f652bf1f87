import Promises
import Reactor
import ReactorIO

// Handlers of `serve` that return nothing.

func twoStatements(_ listener: Listener) {
    listener.serve { connection in  // error: type '()' cannot conform to 'Thenable'
        connection.idleTimeout = .seconds(60)
        connection.write("hello\n")
    }
}

func twoStatements(_ listener: Listener, on group: LoopGroup) -> Promise<DrainResult> {
    listener.serve(on: group, .untilStopped) { connection in  // error: type '()' cannot conform to 'Thenable'
        connection.idleTimeout = .seconds(60)
        connection.write("hello\n")
    }
}

func waitedFor(_ listener: Listener) throws {
    let served = listener.serve(.untilStopped) { connection in
        connection.forEachLine { line in connection.wrote(line) }  // error: value of type
    }
    try hang(served)  // error: failed to produce diagnostic | type of expression is ambiguous
}

func withoutElse(_ listener: Listener, _ isBusy: Bool) {
    listener.serve { connection in  // error: type '()' cannot conform to 'Thenable'
        if !isBusy {
            connection.write("hello\n")
        }
    }
}

func cauterized(_ listener: Listener) {
    listener.serve { connection in  // error: instance method 'serve(_:onError:handler:file:line:)' requires
        connection.forEachChunk { connection.write($0) }.cauterize()
    }
}

func awaiting(_ listener: Listener) {
    listener.serve { connection in  // error: cannot pass function of type '(Connection) async throws
        for try await line in connection.lines { print(line) }
    }
}
