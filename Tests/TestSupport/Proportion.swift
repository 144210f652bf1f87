import Glibc

/// Checks that work on `count` elements takes time in proportion to their number. A search for each of them would take
/// 256 times as long as for a sixteenth of them, and a larger use of memory a few times 16. The times are those of this
/// thread's processor, and compared with each other only, so no machine is too slow or too busy.
/// - Parameter body: does the work on so many elements, from its preparation to its checks.
package func expectProportional(
    _ count: Int, fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column,
    _ body: (Int) throws -> Void
) rethrows {
    var (least, ratio) = (Int.max, Double.infinity)
    // What disturbs a measurement lengthens it, so the shortest one counts.
    for _ in 0..<3 where ratio > 64 {
        for _ in 0..<2 { least = min(least, try processorTime { try body(count / 16) }) }
        ratio = min(ratio, Double(try processorTime { try body(count) }) / Double(least))
    }
    let found = "\(count) elements take \(ratio) times as long as \(count / 16)"
    expect(ratio <= 64, found, fileID: fileID, filePath: filePath, line: line, column: column)
}

/// The nanoseconds for which this thread's processor works in `body`.
private func processorTime(_ body: () throws -> Void) rethrows -> Int {
    func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
    let began = now()
    try body()
    return max(now() - began, 1)
}
