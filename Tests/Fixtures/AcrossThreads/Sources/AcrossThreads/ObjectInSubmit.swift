import Promises
import Reactor

/// What is submitted runs on the loop's thread, and the object stays on this one.
func objectInSubmit(_ ledger: Ledger, _ remote: LoopRemote) {
    remote.submit {
        ledger.entries.append("submitted")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}
