import Promises
import Reactor
import ReactorIO

// Mistakes that the compiler refuses after type checking: objects sent to another thread and still used here.

/// An object that the caller of a function also has cannot go into a task, whatever the function's handlers have
/// captured.
func cartOfParameter(_ promise: Promise<String>, _ ledger: Ledger) {
    promise.done { ledger.entries.append($0) }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// A handler that uses an actor's state binds its other captures to the actor.
actor Desk {
    var count = 0

    func serve(_ promise: Promise<String>) {
        let ledger = Ledger()
        promise.done {
            self.count += 1
            ledger.entries.append($0)  // error: sending 'ledger' risks causing data races
        }.cauterize()
        Task.detached {
            ledger.entries.append("task")
        }
    }
}

/// A connection belongs to the loop on which it was made.
func connectionInTask(_ connection: Connection) {
    Task {  // error: risks causing data races
        connection.abort()
    }
}

actor Registry {
    private var connections: [Connection] = []
    func add(_ connection: Connection) { connections.append(connection) }
}

/// An actor that is not on the loop; the compiler does not know whether one is.
func connectionToActor(_ listener: Listener, _ registry: Registry) -> Promise<DrainResult> {
    listener.serveAsync { connection in
        await registry.add(connection)  // error: sending 'connection' risks causing data races
    }
}

/// The bytes of a frame are lent only for the call of the body.
func frameKept(_ connection: Connection) -> Promise<Void> {
    connection.forEachFrame(LineDecoder()) { _, bytes -> Promise<Void> in
        let kept = bytes.rest()  // error: lifetime-dependent variable 'kept' escapes its scope
        return connection.writable().then { connection.write(kept) }
    }
}

/// A connection belongs to the loop of its handler, as do the objects that the handler shares with others of the loop.
func connectionOfHandlerInTask(_ listener: Listener) -> Promise<DrainResult> {
    listener.serveAsync { connection in
        Task {  // error: risks causing data races
            try await connection.write("there").value
        }
        try await connection.write("here").value
    }
}

func valueOfLoopInTask(_ listener: Listener, _ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) -> Promise<DrainResult> {
    listener.serveAsync(on: group) { connection in
        let ledger = ledgers.value(for: connection)
        Task.detached {  // error: risks causing data races
            ledger.entries.append("there")
        }
        for try await line in connection.lines { ledger.entries.append(line) }
    }
}

func valueOfLoopInTaskOfPromiseHandler(_ listener: Listener, _ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) {
    listener.serve(on: group) { connection in
        let ledger = ledgers.value(for: connection)
        Task {  // error: risks causing data races
            ledger.entries.append("there")
        }
        return connection.write(ledger.entries.last ?? "nothing")
    }.cauterize()
}

/// Two child tasks.
func objectInChildTask(_ listener: Listener) -> Promise<DrainResult> {
    listener.serveAsync { connection in
        let ledger = Ledger()
        async let entry: Void = { ledger.entries.append("there") }()  // error: data races
        ledger.entries.append("here")
        await entry
        connection.close()
    }
}

/// A promise sent to an actor belongs to the actor: it cannot be awaited here too.
func objectAwaited(_ archive: Archive) async throws -> Ledger {
    let promise = Promise.value(Ledger())
    await archive.take(promise)  // error: sending 'promise' risks causing data races
    return try await promise.value
}

/// An object awaited before belongs to the actor too.
func objectAwaitedBefore(_ archive: Archive) async throws {
    let promise = Promise.value(Ledger())
    let ledger = try await promise.value
    await archive.take(promise)  // error: sending 'promise' risks causing data races
    ledger.entries.append("mine?")
}

/// An object that an actor awaits belongs to the actor.
func objectAwaitedByActor(_ archive: Archive) async throws -> Ledger {
    try await archive.first()  // error: non-Sendable 'Ledger'-typed result
}

/// The promise in a task, its resolver here: it would be settled and awaited on two threads.
func objectAwaitedInTask() {
    let (promise, resolver) = Promise<Ledger>.pending()
    Task {  // error: risks causing data races
        try await promise.value.entries.append("there")
    }
    resolver.fulfill(Ledger())
}

/// The same for a guarantee.
func guaranteeAwaitedInTask() {
    let (guarantee, seal) = Guarantee<Ledger>.pending()
    Task {  // error: risks causing data races
        await guarantee.value.entries.append("there")
    }
    seal(Ledger())
}

/// The caller of this function has the promise too.
func objectOfCallerAwaitedInTask(_ promise: Promise<Ledger>) {
    Task {  // error: risks causing data races
        try await promise.value.entries.append("there")
    }
}

func objectAwaitedBeside() async throws {
    let (promise, resolver) = Promise<Ledger>.pending()
    async let count = promise.value.entries.count  // error: risks causing data races
    resolver.fulfill(Ledger())
    _ = try await count
}

/// Awaiting a promise twice gives the same object twice.
func objectAwaitedTwice() async throws {
    let promise = Promise.value(Ledger())
    let (one, other) = try await (promise.value, promise.value)
    Task {  // error: risks causing data races
        one.entries.append("there")
    }
    other.entries.append("here")
}

/// A body of the loop may use objects of this thread, but not send them on.
func objectFromBody(_ archive: Archive, _ promise: Promise<Ledger>) throws {
    try EventLoop.current.run {
        await archive.take(promise)  // error: sending 'promise' risks causing data races
    }
}

/// A child of a task group runs beside it.
func objectInGroup(_ ledger: Ledger) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask {  // error: risks causing data races
            _ = Promise.value(ledger)
        }
    }
}

/// The captures of an async body belong to the loop, and here to the caller too.
func objectOfBodyInTask(_ loop: EventLoop) {
    let ledger = Ledger()
    Promise(on: loop) { ledger.entries.append("loop") }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// A pool and its resources belong to its loop.
func resourceInTask(_ pool: Pool<Ledger>) async throws {
    try await pool.with { ledger in
        ledger.entries.append("loop")
        Task {  // error: risks causing data races
            ledger.entries.append("task")
        }
    }
}

/// The captures of a listener's handler belong to the listener, and here to the caller too.
func objectOfHandlerInTask(_ listener: Listener) {
    let ledger = Ledger()
    listener.serveAsync { connection in
        for try await line in connection.lines { ledger.entries.append(line) }
    }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// And a listener that is still used here.
func objectOfHandlerOfOwnListener() throws {
    let listener = try Listener.bind("127.0.0.1:0")
    let ledger = Ledger()
    listener.serveAsync { connection in
        for try await line in connection.lines { ledger.entries.append(line) }
    }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
    listener.close()
}

/// An actor's own promise may refer to objects of the actor.
func promiseFromActor(_ archive: Archive) async -> Promise<Ledger> {
    await archive.give()  // error: non-Sendable 'Promise<Ledger>'-typed result
}

/// An actor is another thread.
func promiseToActor(_ promise: Promise<Ledger>, _ archive: Archive) async {
    await archive.take(promise)  // error: sending 'promise' risks causing data races
}

/// A task runs on any thread.
func resolverInTask() -> Promise<Ledger> {
    let (promise, resolver) = Promise<Ledger>.pending()
    Task.detached {  // error: risks causing data races
        resolver.fulfill(Ledger())
    }
    return promise
}

/// Lines arrive on the loop of their connection.
func sequenceInTask(_ connection: Connection) {
    let lines = connection.lines
    Task {  // error: risks causing data races
        for try await line in lines { print(line) }
    }
}

/// A timer belongs to its loop.
func timerInTask(_ timer: EventLoop.Timer) {
    Task {  // error: risks causing data races
        _ = timer.isActive
    }
}

/// The value of a loop stays there.
func valueOfLoopReturned(_ ledgers: LoopLocal<Ledger>) -> Ledger {
    ledgers.withValue { $0 }  // error: sending
}
