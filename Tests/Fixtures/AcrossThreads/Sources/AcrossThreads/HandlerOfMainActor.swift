import Promises
import Reactor

/// Connections of a group's loops are not the main actor's.
func handlerOfMainActor(_ listener: Listener, _ group: LoopGroup, _ window: Window) -> Promise<DrainResult> {
    listener.serve(on: group) { connection in
        window.title = "joined"  // error: main actor-isolated property 'title' can not be mutated
        for try await line in connection.lines { print(line) }
    }
}
