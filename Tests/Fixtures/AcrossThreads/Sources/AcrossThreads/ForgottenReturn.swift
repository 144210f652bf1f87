import Promises
import Reactor

/// Not a race: a handler that forgets to return its promise ends at once, and its connection with it.
func forgottenReturn(_ listener: Listener) -> Promise<Void> {
    listener.serve { connection in  // error: the connection ends when this handler returns
        connection.idleTimeout = .seconds(60)
        connection.forEachChunk { connection.write($0) }  // error: is unused
    }
}

func forgottenReturn(_ listener: Listener, on group: LoopGroup) -> Promise<DrainResult> {
    listener.serve(  // error: the connection ends when this handler returns
        on: group, untilStoppedBy: [15], drainTimeout: .zero
    ) { connection in
        connection.idleTimeout = .seconds(60)
        connection.forEachChunk { connection.write($0) }  // error: is unused
    }
}

func forgottenReturn(_ listener: Listener, on group: LoopGroup, _ state: LoopLocal<Int>) -> Promise<DrainResult> {
    listener.serve(  // error: the connection ends when this handler returns
        on: group, state: state, untilStoppedBy: [15], drainTimeout: .zero
    ) { connection, limit in
        connection.idleTimeout = .seconds(limit)
        connection.forEachChunk { connection.write($0) }  // error: is unused
    }
}
