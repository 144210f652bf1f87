import NIOCore
import Promises
import Reactor

extension NIOCore.EventLoop {
    /// This loop as a dispatcher: `promise.map(on: loop.dispatcher) { … }` runs the handler on it.
    public var dispatcher: NIODispatcher { NIODispatcher(self) }
}

/// A SwiftNIO event loop as a dispatcher.
public struct NIODispatcher: Dispatcher {
    private let loop: any NIOCore.EventLoop

    /// - Parameter loop: the loop that runs the jobs.
    public init(_ loop: any NIOCore.EventLoop) { self.loop = loop }

    /// Runs `job` on the loop.
    public func dispatch(_ job: @escaping @Sendable () -> Void) { loop.execute(job) }
}

extension EventLoopFuture where Value: Sendable {
    /// A promise that settles as this future does. Its handlers run on the thread that attaches them.
    ///
    /// A loop of this library does not know about SwiftNIO's: call `hang` on the promise, or take a `hold()`, if
    /// `run()` must not end before. Cancelling the promise has no effect on the future.
    @available(*, noasync, message: "an async function awaits get() of the future")
    public func promise(file: StaticString = #fileID, line: UInt = #line) -> Promise<Value> {
        let (promise, resolver) = Promise<Value>.pending(file, line)
        whenComplete { result in resolver.resolve(result) }
        return promise
    }
}

extension Promise where T: Sendable {
    /// A future of `loop` that settles as this promise does. If the promise's loop ends before, the future fails with
    /// the error that rejects the promise.
    public func future(on loop: any NIOCore.EventLoop) -> EventLoopFuture<T> {
        let promise = loop.makePromise(of: T.self)
        pipe { result in promise.completeWith(result) }
        return promise.futureResult
    }
}

extension Guarantee where T: Sendable {
    /// A future of `loop` that succeeds with the value of this guarantee. It fails if the guarantee is abandoned.
    public func future(on loop: any NIOCore.EventLoop) -> EventLoopFuture<T> {
        let promise = loop.makePromise(of: T.self)
        pipe { result in promise.completeWith(result) }
        return promise.futureResult
    }
}
