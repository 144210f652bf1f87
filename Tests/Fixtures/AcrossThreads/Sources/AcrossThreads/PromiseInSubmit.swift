import Promises
import Reactor

/// A promise of an object is as bound to its thread as the object.
func promiseInSubmit(_ promise: Promise<Ledger>, _ remote: LoopRemote) {
    remote.submit {
        _ = promise.isPending  // error: capture of 'promise' with non-Sendable type 'Promise<Ledger>'
    }
}
