import Dispatch
import Reactor

extension DispatchQueue: Dispatcher {
    /// Runs `job` on the queue: `promise.map(on: queue) { … }`.
    public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
}
