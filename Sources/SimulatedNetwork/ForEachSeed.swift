import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// A failed simulation.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The smallest failing seed.
    public let seed: UInt64
    /// The error from the body.
    public let error: any Error

    /// `seed 7: timed out; SIMULATION_SEED=7 repeats it`
    public var description: String { "seed \(seed): \(error); SIMULATION_SEED=\(seed) repeats it" }
}

/// Runs `body` with a simulated network per seed, on as many threads as the process may use.
///
/// ```swift
/// try forEachSeed(1...1000) { network in … }
/// ```
///
/// After a failure, no larger seed begins. The environment variable `SIMULATION_SEED` names the only seed to run.
/// - Parameters:
///   - seeds: the seeds.
///   - body: called once per seed, on some thread. An error is a failure.
/// - Throws: `SimulationFailure` with the smallest failing seed.
@available(*, noasync, message: "call it in a synchronous test")
public func forEachSeed(
    _ seeds: ClosedRange<UInt64>, _ body: @escaping @Sendable (VirtualNetwork) throws -> Void
) throws {
    if let seed = seedOfEnvironment { return try run(seed, body) }
    let work = LockedValue((next: seeds.lowerBound as UInt64?, failure: nil as SimulationFailure?))
    @Sendable func runAll() {
        while true {
            let seed = work.withLock { work -> UInt64? in
                guard let seed = work.next, work.failure.map({ seed < $0.seed }) ?? true else { return nil }
                work.next = seed == seeds.upperBound ? nil : seed + 1
                return seed
            }
            guard let seed else { return }
            do { try run(seed, body) } catch {
                guard let failure = error as? SimulationFailure else { continue }
                work.withLock { if failure.seed < $0.failure?.seed ?? .max { $0.failure = failure } }
            }
        }
    }
    let threads = max(1, min(Int(sysconf(CInt(_SC_NPROCESSORS_ONLN))), 64))
    let pool = try ThreadPool(name: "seeds", threads: threads)
    try EventLoop.withLoop { _ in
        try hang(when(fulfilled: (0..<threads).map { _ in Promise(on: pool) { runAll() } }).asVoid())
    }
    if let failure = work.withLock({ $0.failure }) { throw failure }
}

private func run(_ seed: UInt64, _ body: (VirtualNetwork) throws -> Void) throws {
    do { try VirtualNetwork(seed: seed).simulate(body) } catch { throw SimulationFailure(seed: seed, error: error) }
}
