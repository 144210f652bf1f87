import Promises
import Reactor

/// The value of a loop stays there.
func valueOfLoopReturned(_ ledgers: LoopLocal<Ledger>) -> Ledger {
    ledgers.withValue { $0 }  // error: sending
}
