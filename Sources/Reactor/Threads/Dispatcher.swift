/// Runs handlers on a thread other than the one that attached them.
///
/// A loop's `remote` and a `ThreadPool` are dispatchers. A type of your own becomes one with a single method:
///
/// ```swift
/// extension DispatchQueue: @retroactive Dispatcher {
///     public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
/// }
/// ```
///
/// An event loop stays alive for the jobs of a `ThreadPool` whose results it waits for. It knows nothing of other
/// dispatchers: if its `run()` must not end before their work does, take a `hold()`.
public protocol Dispatcher: Sendable {
    /// Runs `job` once, now or later, on any thread.
    ///
    /// If the job will never run, release it: that notifies its waiter. Throwing has the same effect and also gives the
    /// reason. An error thrown after the job has begun to run is ignored, and so is a second run.
    func dispatch(_ job: @escaping @Sendable () -> Void) throws
}

/// The reason why a job was refused or a pool could not be created.
public enum DispatchError: Error, Hashable, Sendable {
    /// The loop has ended, with its thread or with the scope of `withLoop`.
    case loopEnded
    /// `shutDown()` has been called on the pool with this name.
    case poolIsShutDown(name: String)
    /// All threads of the pool are busy, and `limit` jobs already wait for one.
    case queueIsFull(name: String, limit: Int)
    /// The process is a fork of the one that created the pool, and has none of the pool's threads.
    case poolIsForked(name: String)
    /// An invalid argument. The text names the call and the value.
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
