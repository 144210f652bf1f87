import Promises
import Reactor

/// An async function has no thread, so it has no loop either, and must not block.
func loopInAsync(_ promise: Promise<Int>, _ guarantee: Guarantee<Int>) async throws {
    let loop = EventLoop.current  // error: class property 'current' is unavailable from asynchronous contexts
    try loop.run()  // error: instance method 'run' is unavailable from asynchronous contexts
    _ = after(.seconds(1))  // error: global function 'after' is unavailable from asynchronous contexts
    _ = connect(to: "127.0.0.1:7000")  // error: global function 'connect' is unavailable
    _ = try hang(promise)  // error: global function 'hang' is unavailable from asynchronous contexts
    _ = hang(guarantee)  // error: global function 'hang' is unavailable from asynchronous contexts
}
