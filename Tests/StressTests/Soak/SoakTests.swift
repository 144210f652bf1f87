@testable import PromisesTestSupport

/// Servers and clients on real sockets, socket pairs and pipes, while system calls fail at random and half of the
/// clients misbehave.
///
/// A few rounds in each run. `SOAK_SECONDS=900` runs for that long, and then also checks the memory and the descriptors
/// of the process, so let it run alone: `swift test --filter 'StressTests\.Soak'`. Its rounds begin with `SOAK_FIRST_SEED`, or with
/// the time. `SOAK_SEED=17` repeats one round.
@Suite(.serialized, .ownThread) struct SoakTests {
    private static let seconds = environmentNumber("SOAK_SECONDS")
    private static let seed = environmentNumber("SOAK_SEED").map(UInt64.init)

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<12)
    func inVirtualTime(seed: UInt64) { _ = round(seed, isVirtual: true) }

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<4)
    func inRealTime(seed: UInt64) { _ = round(seed, isVirtual: false) }

    @Test(.enabled(if: seed != nil)) func oneRound() {
        for isVirtual in [true, false] { print(round(Self.seed!, isVirtual: isVirtual)) }
    }

    private static let slices = 30
    /// The maximum growth of the heap, whatever the number of rounds. Not zero, since Swift Testing keeps something for
    /// each case, and malloc's remainders vary.
    private static let mostGrowth = 32 << 10
    private static let account = Shared(SoakAccount(firstSeed: environmentNumber("SOAK_FIRST_SEED").map(UInt64.init)))

    /// Each slice is a separate case on a separate thread, so that growth from one to the next is the library's. Until
    /// the case ends, Swift Testing keeps a backtrace for every address at which an error was thrown, and until the
    /// thread ends, malloc counts some of the blocks that it has freed as allocated.
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
