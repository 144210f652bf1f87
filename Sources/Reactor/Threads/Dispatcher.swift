/// Where a handler runs that is not to run on the thread which attached it: see `map(on:)` and its kin of `Promises`.
///
/// A loop's `remote` is one, a `ThreadPool` is one, and a type of your own becomes one with a single method:
///
/// ```swift
/// extension DispatchQueue: @retroactive Dispatcher {
///     public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
/// }
/// ```
///
/// An event loop counts the jobs of a `ThreadPool` that its promises wait for among the reasons to go on. Of other
/// dispatchers it knows nothing: where its `run()` must not end before their work, take a `hold()`.
public protocol Dispatcher: Sendable {
    /// Runs `job` once, now or later, on whatever thread.
    ///
    /// If it will never run, let it go: who waits for it is told by that. To throw says the same, and why. (What is thrown
    /// after the job has begun to run counts for nothing; so does a second run.)
    func dispatch(_ job: @escaping @Sendable () -> Void) throws
}

/// Why a job was not taken, or a pool not made.
public enum DispatchError: Error, Hashable, Sendable {
    /// The loop has ended, with its thread or with the scope of `withLoop`.
    case loopEnded
    /// `shutDown()` has been called on the pool of that name.
    case poolIsShutDown(name: String)
    /// All threads of the pool are at work, and `limit` jobs wait for one already.
    case queueIsFull(name: String, limit: Int)
    /// The process is a fork of the one that made the pool, and has none of its threads.
    case poolIsForked(name: String)
    /// An argument that makes no sense; the text names the call and the value.
    case badInput(String)
}

extension DispatchError: CustomStringConvertible {
    /// A sentence for people.
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

extension EventLoop.Remote: Dispatcher {
    /// Runs `job` on the loop, as `submit` does; always as a job of its own, also if this is the loop's thread.
    /// - Throws: `DispatchError.loopEnded`. (A loop that ends with the job in its queue lets it go.)
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws(DispatchError) {
        guard submit(job) else { throw .loopEnded }
    }
}
