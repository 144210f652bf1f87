import Glibc
import Promises
import Reactor
import SimulatedNetwork
import TestSupport
import Testing

/// Many rounds of `SoakRound`, each with its seed.
@Suite struct SoakTests {
    /// `SIMULATION_SEEDS` is their number; seeds start at `SIMULATION_FIRST_SEED`.
    @Test func serversAndClientsOnANetworkThatFails() throws {
        func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
        let first = number("SIMULATION_FIRST_SEED") ?? 1
        let counts = LockedValue((finished: 0, failed: 0))
        try forEachSeed(first...first + (number("SIMULATION_SEEDS") ?? 4) - 1) { network in
            let round = SoakRound(network)
            try round.run()
            counts.withLock { counts in
                counts.finished += round.finished
                counts.failed += round.failed
            }
        }
        print("sessions: \(counts.withLock { $0 })")
        expect(counts.withLock { $0.finished } > 0)
    }
}
