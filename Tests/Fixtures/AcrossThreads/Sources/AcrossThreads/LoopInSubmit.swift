import Promises
import Reactor

/// The loop itself stays at home; `remote` is its door.
func loopInSubmit(_ remote: LoopRemote) {
    let loop = EventLoop.current
    remote.submit {
        loop.stop()  // error: capture of 'loop' with non-Sendable type 'EventLoop'
    }
}
