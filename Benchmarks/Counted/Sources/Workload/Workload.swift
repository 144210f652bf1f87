public import CSupport
import Glibc

/// One contestant's workload for one row of the table.
public struct Workload: Sendable {
    /// The row's name, the same for all contestants.
    public let row: String
    /// The preparation before the clock starts. Called before each measured stretch, so it must be cheap after the
    /// first time.
    public let prepare: @Sendable () -> Void
    /// Does the row's unit of work `n` times, and checks the result after the last one.
    public let run: @Sendable (_ n: Int) -> Void

    /// A row that needs no preparation unless one is given.
    public init(
        _ row: String, prepare: @escaping @Sendable () -> Void = {}, run: @escaping @Sendable (_ n: Int) -> Void
    ) {
        self.row = row
        self.prepare = prepare
        self.run = run
    }
}

/// Uses a value, as far as the optimiser can tell. Costs a store: an opaque call would cost as much as some of the
/// measured work.
@inlinable
@inline(__always)
public func blackHole<T>(_ value: T) { withUnsafePointer(to: value) { bench_use($0) } }

/// A value that the optimiser cannot know to be constant.
@inlinable
@inline(__always)
public func opaque<T>(_ value: T) -> T {
    var value = value
    withUnsafeMutablePointer(to: &value) { bench_use($0) }
    return value
}

/// The cost of one stretch of work.
public struct Cost: Sendable {
    /// Time on the clock.
    public var wall: Int64
    /// Processor time of all threads of the process, user and system.
    public var cpu: Int64
    /// Allocated blocks, or -1 if they are not counted.
    public var allocations: Int64
    /// The peak resident memory of the process, in KiB.
    public var peak: Int64
}

extension Workload {
    /// Runs the work and returns its cost.
    public func measure(_ n: Int) -> Cost {
        prepare()
        let allocations = bench_allocations()
        let wall = nanoseconds(CLOCK_MONOTONIC)
        let cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
        bench_mark()
        run(n)
        bench_mark()
        let cpuAfter = nanoseconds(CLOCK_PROCESS_CPUTIME_ID)
        let wallAfter = nanoseconds(CLOCK_MONOTONIC)
        let counted = bench_allocations()
        return Cost(
            wall: wallAfter - wall, cpu: cpuAfter - cpu, allocations: counted < 0 ? -1 : counted - allocations,
            peak: bench_peak_kib())
    }
}

private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
