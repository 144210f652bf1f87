import Promises
import Reactor
import ReactorIO

// Mistakes that the compiler refuses during type checking, and the contexts in which the module's functions may be
// used.

/// Only an async function can wait; elsewhere there is `settledValue`.
func awaitedWhereNothingWaits(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) throws {
    _ = try promise.value  // error: 'async' property access in a function that does not support concurrency
    _ = guarantee.value  // error: 'async' property access in a function that does not support concurrency
    _ = promise.settledValue
}

/// Handlers: an async function has no loop for them.
func handlersInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    _ = promise.map { $0 + 1 }  // error: instance method 'map' is unavailable from asynchronous contexts
    _ = guarantee.then { .value($0) }  // error: instance method 'then' is unavailable from asynchronous contexts
    promise.catch { _ in }  // error: instance method 'catch' is unavailable from asynchronous contexts
    _ = when(fulfilled: [promise])  // error: global function 'when' is unavailable from asynchronous contexts
    _ = race(promise, promise)  // error: global function 'race' is unavailable from asynchronous contexts
    _ = promise.map(on: nil) { $0 + 1 }
}

/// Connections of a group's loops do not belong to the main actor.
func handlerOfMainActor(_ listener: Listener, _ group: LoopGroup, _ window: Window) -> Promise<DrainResult> {
    listener.serveAsync(on: group) { connection in
        window.title = "joined"  // error: main actor-isolated property 'title' can not be mutated
        for try await line in connection.lines { print(line) }
    }
}

/// Handles that were just created here, which the compiler would let a task take along: their functions are for
/// synchronous code. (A hold may be released anywhere.)
func handlesInTask(_ loop: EventLoop) throws {
    let hold = loop.hold()
    let timer = loop.schedule(after: .seconds(1)) {}
    let hook = loop.beforeWaiting {}
    let signals = try loop.onSignal(15) {}
    let watch = try loop.watch(0, for: .reading) { _ in }
    Task {
        hold.cancel()
        timer.cancel()  // error: instance method 'cancel' is unavailable from asynchronous contexts
    }
    Task {
        hook.cancel()  // error: instance method 'cancel' is unavailable from asynchronous contexts
    }
    Task {
        signals.cancel()  // error: instance method 'cancel' is unavailable from asynchronous contexts
        watch.cancel()  // error: instance method 'cancel' is unavailable from asynchronous contexts
    }
}

/// An async function has no thread, so it has no loop either, and must not block.
func loopInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    let loop = EventLoop.current  // error: class property 'current' is unavailable from asynchronous contexts
    try loop.run()  // error: instance method 'run' is unavailable from asynchronous contexts
    _ = after(.seconds(1))  // error: global function 'after' is unavailable from asynchronous contexts
    _ = connect(to: "127.0.0.1:7000")  // error: global function 'connect' is unavailable
    _ = try hang(promise)  // error: global function 'hang' is unavailable from asynchronous contexts
    _ = hang(guarantee)  // error: global function 'hang' is unavailable from asynchronous contexts
}

/// The loop itself stays on its thread; other threads use `remote`.
func loopInSubmit(_ remote: LoopRemote) {
    let loop = EventLoop.current
    remote.submit {
        loop.stop()  // error: capture of 'loop' with non-Sendable type 'EventLoop'
    }
}

/// The objects of a loop's value belong to the loop.
func objectInValueOfLoop(_ ledgers: LoopLocal<[Ledger]>, _ ledger: Ledger) {
    ledgers.withValue { all in
        print(all.count, ledger.entries)  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// Each loop makes its own.
func objectOfAllLoops(_ ledger: Ledger) -> LoopLocal<Ledger> {
    LoopLocal {
        ledger  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// Collected values come from other threads.
func collectedObject(_ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) async {
    _ = await group.collect(ledgers) { $0 }.value  // error: does not conform to the 'Sendable' protocol
}

/// An async closure runs in a separate task, on another thread.
func objectInAsync(_ ledger: Ledger) -> Promise<Int> {
    Promise { () async throws -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// The body of a guarantee runs elsewhere too, and its value has to be sent back.
func objectInAsyncGuarantee(_ ledger: Ledger) -> Guarantee<Int> {
    Guarantee { () async -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

func objectOfAsyncGuarantee() {
    _ = Guarantee { await Ledger.found() }  // error: type 'Ledger' does not conform to the 'Sendable' protocol
}

/// Handlers on the loops of a group run on several threads.
func objectInGroupHandler(_ listener: Listener, _ group: LoopGroup, _ ledger: Ledger) -> Promise<DrainResult> {
    listener.serveAsync(on: group) { connection in
        ledger.entries.append("joined")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
        for try await line in connection.lines { print(line) }
    }
}

/// A closure passed to `pipe` runs on whichever thread settles. (`done` runs on this one.)
func objectInPipe(_ ledger: Ledger, _ promise: Promise<String>) {
    promise.pipe { _ in
        ledger.entries.append("piped")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// A submitted closure runs on the loop's thread, and the object stays on this one.
func objectInSubmit(_ ledger: Ledger, _ remote: LoopRemote) {
    remote.submit {
        ledger.entries.append("submitted")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// A closure with `on: nil` runs on the thread that settles, too.
func objectInline(_ ledger: Ledger, _ promise: Promise<String>) -> Promise<Int> {
    promise.map(on: nil) { text in
        text.count + ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// A closure with `on:` runs elsewhere.
func objectOnPool(_ ledger: Ledger, _ promise: Promise<String>) -> Promise<Void> {
    promise.map(on: ThreadPool.shared) { text in
        ledger.entries.append(text)  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// A handler belongs to the thread of its function, which here may be any.
func othersState(_ window: Window, _ promise: Promise<String>) -> Promise<Void> {
    promise.done { window.title = $0 }  // error: main actor-isolated property 'title' can not be mutated
}

/// A job of a pool runs on another thread.
func poolJob(_ ledger: Ledger, _ pool: ThreadPool) throws {
    try pool.dispatch {
        ledger.entries.append("job")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// As does the work of a pool behind a promise.
func poolWork(_ ledger: Ledger, _ pool: ThreadPool) -> Promise<Int> {
    Promise(on: pool) { () throws -> Int in
        ledger.entries.count  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// A global constant is shared by all threads.
let promiseForAll = Promise<Ledger>.value(Ledger())  // error: 'promiseForAll' is not concurrency-safe

/// A promise of an object is bound to its thread like the object.
func promiseInSubmit(_ promise: Promise<Ledger>, _ remote: LoopRemote) {
    remote.submit {
        _ = promise.isPending  // error: capture of 'promise' with non-Sendable type 'Promise<Ledger>'
    }
}

/// A resolver of an object is bound like its promise.
func resolverInSubmit(_ remote: LoopRemote) -> Promise<Ledger> {
    Promise { resolver in
        remote.submit {
            resolver.fulfill(Ledger())  // error: capture of 'resolver' with non-Sendable type 'Resolver<Ledger>'
        }
    }
}

/// The function that fulfills a guarantee of an object.
func sealInSubmit(_ remote: LoopRemote) -> Guarantee<Ledger> {
    Guarantee { seal in
        remote.submit {
            seal(Ledger())  // error: capture of 'seal' with non-Sendable type
        }
    }
}

/// A thenable may call its handlers on any thread: one that only has `pipe` is not a promise of an object.
struct Found: Thenable {
    let result: Result<Ledger, any Error>? = nil

    func pipe(to handler: @escaping @Sendable (Result<Ledger, any Error>) -> Void) {
        Task.detached {
            let ledger = Ledger()
            handler(.success(ledger))
            ledger.entries.append("there")
        }
    }

    func asPromise() -> Promise<Ledger> {
        Promise { seal in
            pipe { seal.resolve($0) }  // error: capture of 'seal' with non-Sendable type 'Resolver<Ledger>'
        }
    }
}

/// Functions that need a loop for their timer.
func timeInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    _ = promise.delay(.seconds(1))  // error: instance method 'delay' is unavailable from asynchronous contexts
    _ = guarantee.delay(.seconds(1))  // error: instance method 'delay' is unavailable from asynchronous contexts
    _ = promise.timeout(.seconds(1))  // error: instance method 'timeout' is unavailable from asynchronous contexts
    _ = retry(maxAttempts: 2) { _ in promise }  // error: global function 'retry' is unavailable
    withVirtualTime {}  // error: global function 'withVirtualTime' is unavailable from asynchronous contexts
}

/// And the result has to come back.
func valueFromPool(_ promise: Promise<String>) -> Promise<Void> {
    let ledger = promise.map(on: ThreadPool.shared) { _ in  // error: type 'Ledger' does not conform to the 'Sendable'
        Ledger()
    }
    return ledger.asVoid()
}

/// The value has to get there.
func valueToPool(_ promise: Promise<Ledger>) -> Promise<Int> {
    promise.map(on: ThreadPool.shared) {  // error: type 'Ledger' does not conform to the 'Sendable' protocol
        $0.entries.count
    }
}

/// A variable is an object too.
func variableInPipe(_ guarantee: Guarantee<Int>) {
    var sum = 0
    guarantee.pipe { result in
        sum += (try? result.get()) ?? 0  // error: mutation of captured var 'sum' in concurrently-executing code
    }
}
