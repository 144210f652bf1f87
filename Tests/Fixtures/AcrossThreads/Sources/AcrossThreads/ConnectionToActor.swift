import Promises
import Reactor

actor Registry {
    private var connections: [Connection] = []
    func add(_ connection: Connection) { connections.append(connection) }
}

/// An actor that does not live on the loop; whether one does, the compiler does not know.
func connectionToActor(_ listener: Listener, _ registry: Registry) -> Promise<DrainResult> {
    listener.serve { connection in
        await registry.add(connection)  // error: sending 'connection' risks causing data races
    }
}
