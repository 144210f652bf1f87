import CLinux

extension ThreadPool {
    /// Blocks `count` threads until the latch is opened as often; they are running when this returns.
    func block(_ count: Int = 1, by latch: Gate) throws {
        let isAtIt = Gate()
        for _ in 0..<count {
            try dispatch {
                isAtIt.open()
                latch.wait()
            }
        }
        isAtIt.wait(count)
    }
}

extension ThreadPool {
    /// Threads, busy threads, waiting jobs, finished jobs.
    var figures: [Int] {
        let metrics = metrics
        return [metrics.threads, metrics.busy, metrics.queued, metrics.completed]
    }
}

/// The error that `body` throws. (Not in the argument of a macro, whose closures the compiler can confuse.)
func failure(_ body: () throws -> Void) -> (any Error)? {
    do {
        try body()
        return nil
    } catch { return error }
}

/// The same for an error of the dispatcher.
func refusal(_ body: () throws -> Void) -> DispatchError? { failure(body) as? DispatchError }

/// As Linux shows it.
func nameOfThisThread() -> String { String(text(ofFile: "/proc/self/task/\(clinux_gettid())/comm").dropLast()) }
