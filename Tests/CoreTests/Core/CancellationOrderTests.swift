@testable import PromisesTestSupport

/// A cancellation reaches the handlers below in the order of an error: each clean-up ends before the next begins.
struct CancellationOrderTests {
    private let loop = EventLoop.current

    /// The log of a chain of clean-ups.
    private final class Log {
        var lines: [String] = []

        func cleanUp(_ name: String, _ time: Duration = .seconds(1)) -> Guarantee<Void> {
            lines.append("\(name) begins")
            return after(time).done { [self] in lines.append("\(name) ends") }
        }

        /// `promise`, with the clean-ups a, b and c.
        func cleaned<T>(_ promise: Promise<T>) -> Promise<T> {
            promise.ensureThen { self.cleanUp("a") }.map { $0 }.ensureThen { self.cleanUp("b") }
                .ensure { self.lines.append("c") }
        }

        static var order: [String] { ["a begins", "a ends", "b begins", "b ends", "c"] }
    }

    /// The end of the chain may be an operator, a promise that a handler has returned, or one of several.
    @Test(.inLoop, arguments: 0..<9) func hangReturnsAfterTheCleanUps(shape: Int) throws {
        let log = Log()
        let cleaned = { log.cleaned(after(.seconds(60)).map { 1 }.asPromise()) }
        // It goes on, for another handler.
        let other = endless()
        other.done { _ in }.ignoringErrors()
        let end: Promise<Int> =
            switch shape {
            case 0: cleaned()
            case 1: cleaned().map { $0 }.get { _ in }
            case 2: Promise.value(0).then { _ in cleaned() }.map { $0 }
            case 3: when(fulfilled: [cleaned(), after(.seconds(90)).map { 2 }.asPromise()]).map { $0[0] }
            case 4:
                race(fulfilled: [cleaned(), when(fulfilled: [after(.seconds(90)).map { 2 }.asPromise()]).map { $0[0] }])
            case 5: when(fulfilled: [1], concurrently: 1) { _ in cleaned() }.map { $0[0] }
            case 6: when(fulfilled: [cleaned(), other]).map { $0[0] }
            case 7: when(fulfilled: [cleaned(), other], concurrently: 2) { $0 }.map { $0[0] }
            default: cleaned().timeout(.seconds(30))
            }
        loop.schedule(after: .seconds(1)) { end.cancel() }
        #expect(throws: PromiseError.cancelled) { try hang(end) }
        expectEqual(log.lines, Log.order)
        expect(other.isPending)
        other.cancel()
    }

    /// All handlers of a promise with clean-ups lead to the cancelled promise.
    @Test(.inLoop, arguments: 0..<5) func branchesThatMeetAtCleanUps(shape: Int) throws {
        let log = Log()
        let shared = log.cleaned(endless())
        let branch = { shared.map { $0 } }
        let end: Promise<Int> =
            switch shape {
            case 0: when(fulfilled: [branch(), branch()]).map { $0[0] }
            case 1: when(fulfilled: [shared, shared]).map { $0[0] }
            case 2: race(branch(), branch())
            case 3: when(fulfilled: branch(), race(shared, endless())).map { $0.0 }
            default: when(fulfilled: when(fulfilled: branch(), branch()).map { $0.0 }, branch()).map { $0.0 }
            }
        loop.schedule(after: .seconds(1)) { end.cancel() }
        #expect(throws: PromiseError.cancelled) { try hang(end) }
        expectEqual(log.lines, Log.order)
    }

    /// Each is visited once: quadratic time would be minutes.
    @Test(.inLoop) func ofNestedCombinators() throws {
        let log = Log()
        var end = log.cleaned(endless())
        for _ in 0..<scaled(4_000) { end = when(fulfilled: end, endless()).map { $0.0 } }
        end.cancel()
        #expect(throws: PromiseError.cancelled) { try hang(end) }
        expectEqual(log.lines, Log.order)
    }
}
