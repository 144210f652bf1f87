public import CSupport
import Glibc

/// One contestant's work for one row of the table.
public struct Workload: Sendable {
    /// The row's name, the same for all contestants.
    public let row: String
    /// What must be there before the clock runs. Called before each measured stretch, so it must be cheap from the
    /// second time on.
    public let prepare: @Sendable () -> Void
    /// Does the row's unit of work `n` times. Checks its result itself, after the last one.
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

/// Uses a value, as far as the optimiser can tell. Costs a store: a call that it cannot see through would cost as much
/// as some of what is measured here.
@inlinable
@inline(__always)
public func blackHole<T>(_ value: T) { withUnsafePointer(to: value) { bench_use($0) } }

/// A value of which the optimiser does not know that it is constant.
@inlinable
@inline(__always)
public func opaque<T>(_ value: T) -> T {
    var value = value
    withUnsafeMutablePointer(to: &value) { bench_use($0) }
    return value
}

/// What one stretch of work has cost.
public struct Cost: Sendable {
    /// Time on the clock.
    public var wall: Int64
    /// Time of all the process's threads on processors, user's and system's.
    public var cpu: Int64
    /// Blocks asked for, or -1 if they are not counted.
    public var allocations: Int64
    /// The most memory that the process has ever had resident, in KiB.
    public var peak: Int64
}

extension Workload {
    /// Runs the work and says what it has cost.
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
