import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Servers and clients on real sockets, socket pairs and pipes, while system calls fail by dice and half of the clients
/// misbehave.
///
/// A few rounds in each run. `SOAK_SECONDS=900` goes on for so long, and then also looks at the memory and at the
/// descriptors of the process, so let it run alone: `swift test --filter Soak`. Its rounds begin with `SOAK_FIRST_SEED`, or
/// with the time. `SOAK_SEED=17` repeats one round.
@Suite(.serialized, .ownThread) struct SoakTests {
    private static let seconds = number("SOAK_SECONDS")
    private static let seed = number("SOAK_SEED").map(UInt64.init)

    private static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<12)
    func inVirtualTime(seed: UInt64) { _ = round(seed, isVirtual: true) }

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<4)
    func inRealTime(seed: UInt64) { _ = round(seed, isVirtual: false) }

    @Test(.enabled(if: seed != nil)) func oneRound() {
        for isVirtual in [true, false] { print(round(Self.seed!, isVirtual: isVirtual)) }
    }

    private static let slices = 30
    /// The most that the heap may grow, whatever the number of rounds. Not zero, since Swift Testing keeps something of each
    /// case, and malloc's remainders are not the same each time.
    private static let mostGrowth = 32 << 10
    private static let account = Shared(SoakAccount(firstSeed: number("SOAK_FIRST_SEED").map(UInt64.init)))

    /// Each slice is a case of its own on a thread of its own, so that what grows from one to the next is the library's.
    /// Swift Testing keeps a backtrace for every address at which an error has been thrown until the case ends, and malloc
    /// some of the blocks that a thread has freed, as if they were given out, until the thread ends.
    @Test(.enabled(if: seconds != nil && seed == nil), arguments: 0..<slices) func forAWhile(slice: Int) {
        Self.account.change { $0.beginSlice() }
        let end = ContinuousClock.now + .seconds(Self.seconds!) / Self.slices
        TestThread.run {
            while ContinuousClock.now < end && Self.account.value.sum.complaints.count < 10 {
                let (seed, count) = Self.account.change { ($0.seed, $0.rounds) }
                let outcome = SoakRound.outcome(seed: seed, isVirtual: count % 4 != 3)
                Self.account.change { $0.add(outcome) }
            }
        }
        guard slice == Self.slices - 1 else { return }
        let account = Self.account.value
        print(account.text)
        expectEqual(account.sum.complaints, [])
        expect(account.sum.whole > 0)
        expectEqual(account.descriptorGrowth, 0)
        if let growth = account.growth { expect(growth < Self.mostGrowth) }
    }

    private func round(_ seed: UInt64, isVirtual: Bool) -> SoakRound.Outcome {
        let outcome = SoakRound.outcome(seed: seed, isVirtual: isVirtual)
        expectEqual(outcome.complaints, [])
        return outcome
    }
}
