import Promises
import Reactor

/// What the value of a loop refers to belongs to the loop.
func objectInValueOfLoop(_ ledgers: LoopLocal<[Ledger]>, _ ledger: Ledger) {
    ledgers.withValue { all in
        print(all.count, ledger.entries)  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// Each loop makes its own.
func objectOfAllLoops(_ ledger: Ledger) -> LoopLocal<Ledger> {
    LoopLocal {
        ledger  // error: capture of 'ledger' with non-Sendable type 'Ledger'
    }
}

/// What is collected comes from other threads.
func collectedObject(_ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) async {
    _ = await group.collect(ledgers) { $0 }.value  // error: does not conform to the 'Sendable' protocol
}
