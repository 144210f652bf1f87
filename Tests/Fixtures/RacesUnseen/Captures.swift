import Promises
import Reactor
import ReactorIO

final class Cart {
    var items: [String] = []
}

/// A handler and a task share an object that the function has created. The promise is `Sendable`, so the compiler does
/// not count the handler as an owner of the object.
func objectOfHandlerInTask(_ promise: Promise<String>) {
    let cart = Cart()
    promise.done { cart.items.append($0) }.cauterize()
    Task { cart.items.append("task") }
}

/// A variable is an object too.
func variableOfHandlerInTask(_ promise: Promise<Int>) {
    var sum = 0
    promise.done { sum += $0 }.cauterize()
    Task { sum += 1 }
}

/// A promise of an object does not help: promise, handler and object go into the task together, and the loop still has the
/// handler.
func promiseOfObjectAndTask() {
    let (promise, resolver) = Promise<Cart>.pending()
    let cart = Cart()
    promise.done { _ in cart.items.append("handler") }.cauterize()
    resolver.fulfill(Cart())
    Task { cart.items.append("task") }
}

/// Timers and jobs of a loop that the function itself has obtained.
func objectOfTimerInTask() {
    let cart = Cart()
    EventLoop.current.schedule(after: .seconds(1)) { cart.items.append("timer") }
    Task { cart.items.append("task") }
}

/// An async body of a loop that the function itself has obtained.
func objectOfBodyInTask() {
    let cart = Cart()
    Promise(on: .current) { cart.items.append("body") }.cauterize()
    Task { cart.items.append("task") }
}

/// On the main actor a plain `Task` stays there, and a detached one does not.
@MainActor func objectOfMainActorInDetachedTask(_ promise: Promise<String>) {
    let cart = Cart()
    promise.done { cart.items.append($0) }.cauterize()
    Task.detached { cart.items.append("task") }
}

/// A synchronous function moves what the handle's own functions refuse to an async one. It traps, in every build.
func handleInSynchronousFunction() {
    func stop(_ timer: EventLoop.Timer) { timer.cancel() }
    let timer = EventLoop.current.schedule(after: .seconds(1)) {}
    Task { stop(timer) }
}

/// An actor without an executor on a loop: the handler runs when something drives the loop of the pool's thread on
/// which the method runs, if ever, and the actor may run elsewhere then.
actor Till {
    private var sum = 0

    func count(_ promise: Promise<Int>) { promise.done { self.sum += $0 }.cauterize() }
}

/// A handler of the function's own listener, which it does not use again: listener, handler and object go into the task
/// together.
func objectOfAsyncHandlerInTask() throws -> Promise<DrainResult> {
    let listener = try Listener.bind("127.0.0.1:0")
    let cart = Cart()
    let served = listener.serveAsync { connection in
        for try await line in connection.lines { cart.items.append(line) }
    }
    Task { cart.items.append("task") }
    return served
}

/// A handler that leaves the loop by a preference for another executor.
func connectionOfHandlerOnOtherExecutor(_ listener: Listener, _ other: LoopRemote) -> Promise<DrainResult> {
    listener.serveAsync { connection in
        await withTaskExecutorPreference(other) { connection.abort() }
    }
}

/// A handler of an actor, first stored in a variable: this loses the actor that it belongs to, for the library too. (As
/// an argument it is refused when the server starts.)
actor Shop {
    private var visits = 0

    func serve(_ listener: sending Listener) -> Promise<DrainResult> {
        let handler: (Connection) async throws -> Void = { connection in
            self.visits += 1
            connection.close()
            await Task.yield()
        }
        return listener.serveAsync(handler: handler)
    }
}
