import Promises
import Reactor
import ServiceLifecycle

/// A group of loops as a `Service` that ends them at a graceful shutdown. List it before the services that use it: a
/// `ServiceGroup` shuts services down in reverse order, each after the next one has ended.
public struct LoopGroupService: Service {
    /// The loops.
    public let group: LoopGroup

    /// - Parameter group: the loops.
    public init(_ group: LoopGroup) { self.group = group }

    /// Waits for the graceful shutdown, or for cancellation, and then until the loops have ended.
    public func run() async throws {
        try? await gracefulShutdown()
        group.stop()
        // Joining blocks, so it runs on a thread of the pool, not on one of Swift's.
        await withCheckedContinuation { continuation in
            let joined = ResumedWhenReleased(continuation)
            try? ThreadPool.shared.dispatch { [group] in
                group.join()
                withExtendedLifetime(joined) {}
            }
        }
    }

    /// Resumes a task when the last reference is released, whether or not a job has run.
    private final class ResumedWhenReleased: Sendable {
        private let continuation: CheckedContinuation<Void, Never>
        init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
        deinit { continuation.resume() }
    }
}
