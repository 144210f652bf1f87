import Glibc
import Promises
import Reactor
import Testing

/// Servers and clients on real sockets, while system calls fail by dice and half of the clients misbehave.
///
/// A few rounds in each run. `SOAK_SECONDS=900` goes on for so long, and then also looks at the memory and at the
/// descriptors of the process, so let it run alone: `swift test --filter Soak`. `SOAK_SEED=17` repeats one round.
@Suite(.serialized) struct Soak {
    private static let seconds = number("SOAK_SECONDS")
    private static let seed = number("SOAK_SEED").map(UInt64.init)

    private static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<12)
    func inVirtualTime(seed: UInt64) throws { _ = try round(seed, isVirtual: true) }

    @Test(.enabled(if: seconds == nil && seed == nil), arguments: UInt64(0)..<4)
    func inRealTime(seed: UInt64) throws { _ = try round(seed, isVirtual: false) }

    @Test(.enabled(if: seed != nil)) func oneRound() throws {
        for isVirtual in [true, false] { print(try round(Self.seed!, isVirtual: isVirtual)) }
    }

    @Test(.enabled(if: seconds != nil && seed == nil)) func forAWhile() throws {
        var sum = SoakRound.Outcome()
        var rounds = 0
        let begin = time(nil)
        // Each run has rounds of its own.
        var seed = UInt64(begin) << 20
        var (memory, descriptors) = (heapInUse(), 0)
        while time(nil) - begin < Self.seconds! && sum.complaints.count < 10 {
            // What is made once only is there by then.
            if rounds == 100 { (memory, descriptors) = (heapInUse(), openDescriptors()) }
            let outcome = try round(seed, isVirtual: rounds % 4 != 3)
            sum.complaints += outcome.complaints
            sum.connections += outcome.connections
            sum.whole += outcome.whole
            sum.bytes += outcome.bytes
            sum.faults.merge(outcome.faults, uniquingKeysWith: +)
            rounds += 1
            seed += 1
        }
        if rounds > 100 {
            #expect(openDescriptors() == descriptors)
            let growth = heapInUse().map { $0 - (memory ?? 0) } ?? 0
            #expect(growth < 256 << 10)
            print("the heap has grown by \(growth) bytes")
        }
        let faults = sum.faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        print(
            "\(rounds) rounds, \(sum.connections) connections, \(sum.whole) of them to the end, \(sum.bytes) bytes; faults:",
            faults)
        #expect(sum.whole > 0)
    }

    private func round(_ seed: UInt64, isVirtual: Bool) throws -> SoakRound.Outcome {
        let outcome = try SoakRound.run(seed: seed, isVirtual: isVirtual)
        #expect(outcome.complaints.isEmpty, "SOAK_SEED=\(seed), in \(isVirtual ? "virtual" : "real") time")
        return outcome
    }

    private func openDescriptors() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }
}
