import Promises

/// Not a race: a handler that forgets to return its promise ends at once, and its connection with it.
func forgottenReturn(_ listener: Listener) -> Promise<Void> {
    listener.serve { connection in  // error: the connection ends when this handler returns
        connection.idleTimeout = .seconds(60)
        connection.forEachChunk { connection.write($0) }  // error: is unused
    }
}
