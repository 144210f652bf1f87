/// Runs handlers on another thread than the one that attached them.
///
/// A loop's `remote` and a `ThreadPool` are dispatchers. One method makes your own type a dispatcher:
///
/// ```swift
/// extension DispatchQueue: @retroactive Dispatcher {
///     public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
/// }
/// ```
///
/// A loop stays alive while it waits for results from a `ThreadPool`'s jobs, but knows nothing about other dispatchers.
/// If `run()` must not end before their work, take a `hold()`.
public protocol Dispatcher: Sendable {
    /// Runs `job` once, now or later, on any thread.
    ///
    /// If a job will never run, release it, which notifies its waiter, or throw, which also gives the reason. An error
    /// thrown after the job has begun is ignored, and so is a second run.
    func dispatch(_ job: @escaping @Sendable () -> Void) throws
}

/// The reason that a job was refused, or that a pool was not created.
public enum DispatchError: Error, Hashable, Sendable {
    /// The loop has ended, together with its thread or `withLoop`.
    case loopEnded
    /// The pool was shut down with `shutDown()`.
    case poolIsShutDown(name: String)
    /// All threads of the pool are busy, and `limit` jobs wait.
    case queueIsFull(name: String, limit: Int)
    /// The process is a fork, and lacks the pool's threads.
    case poolIsForked(name: String)
    /// An argument is invalid; the text names the call and the value.
    case badInput(String)
}

extension DispatchError: CustomStringConvertible {
    /// A sentence for human readers.
    public var description: String {
        switch self {
        case .loopEnded: "dispatch to an event loop that has ended"
        case .poolIsShutDown(let name): "dispatch to the thread pool \"\(name)\", which has been shut down"
        case .queueIsFull(let name, let limit):
            "dispatch to the thread pool \"\(name)\", where \(limit) job\(limit == 1 ? " waits" : "s wait") already"
        case .poolIsForked(let name):
            "dispatch to the thread pool \"\(name)\" of the process that this one was forked from"
        case .badInput(let text): text
        }
    }
}
