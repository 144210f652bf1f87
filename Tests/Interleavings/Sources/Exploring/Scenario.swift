import Glibc
import ModelThreads

/// A few threads that use the library together, and what must hold in the end.
package struct Scenario {
    package let name: String
    package let body: () -> Void

    package init(_ name: String, _ body: @escaping () -> Void) {
        self.name = name
        self.body = body
    }
}

/// Starts a thread of the model. The closure is released there. That the thread gets a loop, and that the loop ends with it, are
/// no steps.
/// - Returns: what `join` takes.
@discardableResult
package func thread(_ body: @escaping @Sendable () -> Void) -> CInt {
    model_start_thread(
        { context in
            model_be_quiet(true)
            prepareThread()
            model_be_quiet(false)
            Unmanaged<Box>.fromOpaque(context!).takeRetainedValue().body.take()?()
            model_be_quiet(true)
            return nil
        }, Unmanaged.passRetained(Box(body)).toOpaque(), false)
}

package func join(_ thread: CInt...) { for thread in thread { model_join_thread(thread) } }

private final class Box {
    var body: (() -> Void)?
    init(_ body: @escaping () -> Void) { self.body = body }
}

/// Called first on each thread.
nonisolated(unsafe) package var prepareThread: () -> Void = {}

nonisolated(unsafe) private var endings: [() -> Void] = []

/// Calls `body` once all threads have ended.
package func atEnd(_ body: @escaping () -> Void) { endings.append(body) }

func callEndings() {
    for body in endings { body() }
    endings = []
}

package func check(_ condition: Bool, _ text: String, file: StaticString = #fileID, line: UInt = #line) {
    if !condition { model_fail("\(file):\(line): \(text)") }
}

package func checkEqual<T: Equatable>(_ one: T, _ other: T, file: StaticString = #fileID, line: UInt = #line) {
    if one != other { model_fail("\(file):\(line): \(one) is not \(other)") }
}

extension Scenario {
    /// Explores the scenario: with no and one preemption first, since a failure with few of them is easy to read; then without a
    /// bound; and if that has too many interleavings, up to `most` preemptions.
    /// - Returns: what was explored.
    package func explore(limit: Int, seconds: Double, preemptions most: Int) -> (
        runs: Int, text: String, isAll: Bool
    ) {
        let began = now()
        var runs = 0
        var steps = 0
        func search(_ bound: Explorer.Bound, _ limit: Int = .max, share: Double = 1) -> Bool {
            var explorer = Explorer(bound, body)
            let isComplete = explorer.explore(atMost: limit) { now() - began > seconds * share }
            runs += explorer.runs
            steps = max(steps, explorer.longest)
            return isComplete
        }
        model_set_title(strdup(name))
        var done = -1
        for bound in 0...1 where search(.preemptions(bound)) && done == bound - 1 { done = bound }
        if search(.none, limit, share: 0.5) { return (runs, "all; \(steps) steps", true) }
        var bound = 2
        while bound <= most && done == bound - 1 {
            if search(.preemptions(bound)) { done = bound }
            bound += 1
        }
        return (
            runs, done < 0 ? "of unknown; \(steps) steps" : "all with ≤ \(done) preemptions; \(steps) steps",
            done >= most
        )
    }
}

/// Seconds.
package func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
