import Reactor

/// An asynchronous sequence of elements that arrive on an event loop: lines, chunks, connections, signals.
///
/// ```swift
/// for try await line in connection.lines { try await connection.write(line + "\n").value }
/// ```
///
/// The loop reads or accepts only when the consumer asks, one element at a time, so a slow consumer slows down its
/// peer. Cancelling the waiting task ends its wait with a `CancellationError`. An element that arrives at that moment
/// is not lost: this call or the next returns it.
///
/// Use it in async functions that run on the loop's thread: in an actor whose executor is the loop's `remote`, on
/// `@MainActor` if the main thread drives the loop, in `EventLoop.run { … }`, or in a task that prefers the `remote`.
/// On any other thread, even one of Swift's pool with an undriven loop, it throws `PromiseError.badInput`. Each
/// iterator continues where the previous one stopped.
public struct LoopSequence<Element>: AsyncSequence {
    /// Errors from the source or the loop.
    public typealias Failure = any Error

    private let source: any LoopSource<Element>

    package init(_ source: any LoopSource<Element>) { self.source = source }

    /// Makes an iterator for `for await`.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source) }

    /// Requests one element at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: any LoopSource<Element>
        private var isOver = false

        init(_ source: any LoopSource<Element>) { self.source = source }

        /// Waits for the next element.
        /// - Returns: the element; `nil` at the end and from then on.
        /// - Throws: the source's error, which ends the sequence; `CancellationError`; or `PromiseError.badInput` on
        ///   another thread than the loop's.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            if isOver { return nil }
            guard source.loop.isDrivenHere else {
                throw PromiseError.badInput(
                    "\(source.name) was asked for its next element on a thread that is not its loop's; iterate in an "
                        + "actor whose executor is the loop's remote, or in EventLoop.run { … }")
            }
            do {
                let element = try await source.next(isolation: actor)
                isOver = element == nil
                return element
            } catch {
                isOver = !(error is CancellationError)
                throw error
            }
        }
    }
}

/// The source of the elements. Not a closure: a closure passed for a `nonisolated(nonsending)` parameter left the
/// caller's thread (Swift 6.3.1), and a closure with an isolated parameter may not capture values with that isolation.
package protocol LoopSource<Element>: AnyObject {
    associatedtype Element

    var name: StaticString { get }
    var loop: EventLoop { get }

    /// `nil` means the end. Called on the loop's thread.
    func next(isolation _: isolated (any Actor)?) async throws -> Element?
}

@available(*, unavailable, message: "it belongs to the thread of its loop")
extension LoopSequence: Sendable {}
