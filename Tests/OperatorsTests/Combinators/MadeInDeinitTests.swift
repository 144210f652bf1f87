@testable import PromisesTestSupport

/// Combinators that a `deinit` makes while another operation is dropped: the drop of their nodes follows inside that one.
struct MadeInDeinitTests {
    enum Kind: CaseIterable { case all, each, race, raceFulfilled, concurrently, forEach, reduce }

    private final class Work {
        let source = Promise<Int>.pending()
        private var settlements: [() -> Void] = []

        /// A combinator of a promise that stays pending, and of a combinator of the source, which ends first.
        func combine(_ outer: Kind, _ inner: Kind) -> Promise<Void> {
            let sources = [source.promise]
            return switch inner {
            case .all: combine(outer, when(fulfilled: sources), [1])
            case .each: combine(outer, when(resolved: sources).asPromise(), [])
            case .race: combine(outer, race(sources), 1)
            case .raceFulfilled: combine(outer, race(fulfilled: sources), 1)
            case .concurrently: combine(outer, when(fulfilled: sources, concurrently: 2) { $0 }, [1])
            case .forEach: combine(outer, forEach(sources) { $0 }, ())
            case .reduce: combine(outer, Promise.value(sources).thenReduce(0) { _, source in source }, 1)
            }
        }

        private func combine<Value>(_ kind: Kind, _ inner: Promise<Value>, _ value: Value) -> Promise<Void> {
            let (other, resolver) = Promise<Value>.pending()
            settlements.append { resolver.fulfill(value) }
            let sources = [other, inner]
            return switch kind {
            case .all: when(fulfilled: sources).asVoid()
            case .each: when(resolved: sources).asVoid().asPromise()
            case .race: race(sources).asVoid()
            case .raceFulfilled: race(fulfilled: sources).asVoid()
            case .concurrently: when(fulfilled: sources, concurrently: 2) { $0 }.asVoid()
            case .forEach: forEach(sources) { $0 }
            case .reduce: Promise.value(sources).thenReduce(()) { _, source in source.asVoid() }
            }
        }

        func settle() {
            for settle in settlements { settle() }
            source.resolver.fulfill(1)
        }
    }

    @Test(arguments: Kind.allCases, Kind.allCases)
    func atTheEndOfTheLoop(outer: Kind, inner: Kind) {
        var ends: [String] = []
        let (work, last) = (Work(), Promise<Int>.pending())
        EventLoop.withLoop { _ in
            let words = LastWords {
                work.combine(outer, inner)
                    .done { ends.append("done") }
                    .catch(policy: .allErrors) { ends.append("\($0)") }
            }
            last.promise.done { _ in words.use() }.ignoringErrors()
        }
        work.settle()
        last.resolver.fulfill(1)
        // No handler runs after the end of its loop.
        expectEqual(ends, [])
    }

    @Test(.inLoop, arguments: Kind.allCases, Kind.allCases)
    func duringACancellation(outer: Kind, inner: Kind) throws {
        var ends: [String] = []
        let (work, last) = (Work(), Promise<Int>.pending())
        let child = {
            let words = LastWords {
                work.combine(outer, inner)
                    .done { ends.append("done") }
                    .catch(policy: .allErrors) { ends.append("\($0)") }
                // The other one waits for the same source, which continues.
                work.combine(outer, inner).cancel()
            }
            return last.promise.map { _ in words.use() }
        }()
        child.cancel()
        try EventLoop.current.turn(.poll)
        work.settle()
        try EventLoop.current.run()
        expectEqual(ends, ["done"])
        last.resolver.fulfill(1)
    }
}
