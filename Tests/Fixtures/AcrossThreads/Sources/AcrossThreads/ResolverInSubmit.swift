import Promises
import Reactor

/// And so is what settles it.
func resolverInSubmit(_ remote: LoopRemote) -> Promise<Ledger> {
    Promise { resolver in
        remote.submit {
            resolver.fulfill(Ledger())  // error: capture of 'resolver' with non-Sendable type 'Resolver<Ledger>'
        }
    }
}
