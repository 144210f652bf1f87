import Reactor

/// What comes one after the other on an event loop, as an asynchronous sequence: lines, chunks, connections, signals, ticks.
///
/// ```swift
/// for try await line in connection.lines { try await connection.write(line + "\n").value }
/// ```
///
/// It is pulled: nothing is read, accepted or timed before it is asked for, and one is asked for at a time; so who is slow
/// slows down the peer. Cancelling the task that waits ends its wait, by `CancellationError`, and loses nothing: what comes at
/// that moment is the answer, or the next one's.
///
/// It belongs to the loop's thread: for async functions there, which are those of an actor whose executor is the loop's
/// `remote`, of `@MainActor` if the main thread drives the loop, of `EventLoop.run { … }`, or of a task that prefers the
/// `remote`. Elsewhere it throws `PromiseError.badInput`, also on a thread of Swift's pool whose own loop nobody drives. Every
/// iterator goes on where the one before it stopped.
public struct LoopSequence<Element>: AsyncSequence {
    /// What fails it, besides the loop's own errors.
    public typealias Failure = any Error

    let source: LoopSource<Element>

    init(_ source: LoopSource<Element>) { self.source = source }

    /// Called by `for await`.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source) }

    /// See `LoopSequence`.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: LoopSource<Element>
        private var isOver = false

        init(_ source: LoopSource<Element>) { self.source = source }

        /// The next one; `nil` at the end, and from then on.
        public mutating func next() async throws -> Element? { try await next(isolation: nil) }

        /// The next one; `nil` at the end, and from then on.
        /// - Throws: what the source fails with, and then it is over; `CancellationError`; `PromiseError.badInput` on another
        ///   thread than the loop's.
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

/// Where the elements come from. A class, since a closure that is passed for a `nonisolated(nonsending)` parameter left the
/// caller's thread (Swift 6.3.1), and one with an isolated parameter may capture nothing of it.
class LoopSource<Element> {
    final let name: StaticString
    final let loop: EventLoop

    init(_ name: StaticString, on loop: EventLoop) {
        self.name = name
        self.loop = loop
    }

    /// Asks for the next one; `nil` is the end. On the loop's thread, where the caller is.
    func next(isolation _: isolated (any Actor)?) async throws -> Element? { preconditionFailure("abstract") }
}

@available(*, unavailable, message: "it belongs to the thread of its loop")
extension LoopSequence: Sendable {}
