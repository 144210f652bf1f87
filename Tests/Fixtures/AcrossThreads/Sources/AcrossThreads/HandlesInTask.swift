import Reactor

/// Handles that were made here a moment ago, which the compiler would let a task take along: their functions are for
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
