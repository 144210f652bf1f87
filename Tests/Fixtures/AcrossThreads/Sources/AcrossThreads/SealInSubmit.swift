import Promises
import Reactor

/// The function that fulfills a guarantee of an object.
func sealInSubmit(_ remote: LoopRemote) -> Guarantee<Ledger> {
    Guarantee { seal in
        remote.submit {
            seal(Ledger())  // error: capture of 'seal' with non-Sendable type
        }
    }
}
