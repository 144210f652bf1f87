import Promises
import Reactor

// Handlers of `serve` that return nothing.

func twoStatements(_ listener: Listener) {
    listener.serve { connection in  // error: call to global actor 'ThisHandlerReturnsNothing
        connection.idleTimeout = .seconds(60)
        connection.write("hello\n")  // warning: result of call to 'write(_:file:line:)' is unused
    }
}

func twoStatements(_ listener: Listener, on group: LoopGroup) -> Promise<DrainResult> {
    listener.serve(on: group, .untilStopped) { connection in  // error: call to global actor 'ThisHandlerReturnsNothing
        connection.idleTimeout = .seconds(60)
        connection.write("hello\n")  // warning: result of call to 'write(_:file:line:)' is unused
    }
}

func waitedFor(_ listener: Listener) throws {
    let served = listener.serve(.untilStopped) { connection in
        connection.forEachLine { line in connection.wrote(line) }  // error: value of type
    }
    try hang(served)  // error: failed to produce diagnostic for expression
}

func withoutElse(_ listener: Listener, _ isBusy: Bool) {
    listener.serve { connection in  // error: call to global actor 'ThisHandlerReturnsNothing
        if !isBusy {
            connection.write("hello\n")  // warning: result of call to 'write(_:file:line:)' is unused
        }
    }
}

func cauterized(_ listener: Listener) {
    listener.serve { connection in  // error: call to global actor 'ThisHandlerReturnsNothing
        connection.forEachChunk { connection.write($0) }.cauterize()
    }
}

func inAnAsyncFunction(_ listener: Listener) async {
    await listener.serve { connection in  // error: instance method 'serve' is unavailable from asynchronous contexts
        connection.write("hello\n").cauterize()
    }
}
