import Promises
import Reactor

/// A body of the loop may use what is this thread's, and not hand it on.
func objectFromBody(_ archive: Archive, _ promise: Promise<Ledger>) throws {
    try EventLoop.current.run {
        await archive.take(promise)  // error: sending 'promise' risks causing data races
    }
}
