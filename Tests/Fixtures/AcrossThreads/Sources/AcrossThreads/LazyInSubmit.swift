import Promises
import Reactor

/// A lazy promise begins where it is first asked for, with what its closure has captured.
func lazyInSubmit(_ remote: EventLoop.Remote) {
    let lazy = LazyPromise<Int> { $0.fulfill(1) }
    remote.submit {
        _ = lazy.asPromise()  // error: capture of 'lazy' with non-Sendable type 'LazyPromise<Int>'
    }
}
