@testable import PromisesTestSupport

/// The result of a long soak: all its rounds, and the state of the process before each slice of them.
struct SoakAccount {
    private(set) var rounds = 0
    private(set) var sum = SoakRound.Outcome()
    private var heaps: [Int?] = []
    private var descriptors: [Int] = []
    private let firstSeed: UInt64

    /// Without a first seed each run has different rounds.
    init(firstSeed: UInt64?) { self.firstSeed = firstSeed ?? UInt64(time(nil)) << 20 }

    var seed: UInt64 { firstSeed + UInt64(rounds) }

    mutating func beginSlice() {
        heaps.append(heapInUse())
        descriptors.append(openDescriptors())
    }

    mutating func add(_ outcome: SoakRound.Outcome) {
        rounds += 1
        sum.complaints += outcome.complaints
        sum.connections.merge(outcome.connections, uniquingKeysWith: +)
        sum.faults.merge(outcome.faults, uniquingKeysWith: +)
        sum.whole += outcome.whole
        sum.bytes += outcome.bytes
    }

    // MARK: In the end

    /// The growth from the second third of the slices, when everything that is created once exists, to the last third.
    /// The minimum of each: some measurements include objects that another thread is about to release.
    var growth: Int? {
        let third = heaps.count / 3
        guard let before = heaps[third..<2 * third].compactMap({ $0 }).min() else { return nil }
        return heaps[(2 * third)...].compactMap { $0 }.min().map { $0 - before }
    }

    /// The same for descriptors.
    var descriptorGrowth: Int {
        let third = descriptors.count / 3
        return descriptors[(2 * third)...].min()! - descriptors[third..<2 * third].min()!
    }

    var text: String {
        func list(_ counts: [String: Int]) -> String {
            counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        }
        return """
            \(rounds) rounds, \(sum.whole) conversations to the end, \(sum.bytes) bytes
            connections: \(list(sum.connections))
            faults: \(list(sum.faults))
            the heap has grown by \(growth.map { "\($0) bytes" } ?? "an unknown amount")
            """
    }
}

private func openDescriptors() -> Int {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return count
}
