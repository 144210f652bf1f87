@testable import PromisesTestSupport

/// Inline handlers of the sources and of the result, which run during a settlement.
struct FanInReentrancyTests {
    private let loop = EventLoop.current

    enum Kind: CaseIterable {
        case all, each, race, raceFulfilled

        func gather(_ sources: [Promise<Int>]) -> Promise<[Int]> {
            switch self {
            case .all: Promises.when(fulfilled: sources)
            case .each: Promises.when(resolved: sources).map { $0.map { (try? $0.get()) ?? -1 } }.asPromise()
            case .race: Promises.race(sources).map { [$0] }
            case .raceFulfilled: Promises.race(fulfilled: sources).map { [$0] }
            }
        }
    }

    private typealias Pair = (promise: Promise<Int>, resolver: Resolver<Int>)

    private func pairs(_ count: Int) -> [Pair] { (0..<count).map { _ in Promise<Int>.pending() } }

    @Test(.inLoop, arguments: Kind.allCases, [false, true])
    func aSourceThatSettlesTheNext(kind: Kind, isFirst: Bool) throws {
        let pairs = pairs(50)
        // Otherwise the optimiser would release resolvers after the last use of the array, and so abandon promises.
        defer { withExtendedLifetime(pairs) {} }
        func link() {
            for index in 0..<49 {
                pairs[index].promise.pipe { _ in pairs[index + 1].resolver.fulfill(index + 1) }
            }
        }
        if isFirst { link() }
        let result = kind.gather(pairs.map(\.promise))
        if !isFirst { link() }
        pairs[0].resolver.fulfill(0)
        switch kind {
        // Handlers attached before the race make the second promise's handlers be called first.
        case .race, .raceFulfilled: expect(result, gives: [isFirst ? 1 : 0])
        default: expect(result, gives: Array(0..<50))
        }
    }

    @Test(.inLoop, arguments: Kind.allCases)
    func aSourceThatRejectsTheNext(kind: Kind) throws {
        let pairs = pairs(3)
        defer { withExtendedLifetime(pairs) {} }
        let result = kind.gather(pairs.map(\.promise))
        pairs[0].promise.pipe { _ in pairs[1].resolver.reject(Flaw(1)) }
        pairs[1].promise.pipe { _ in pairs[2].resolver.fulfill(2) }
        pairs[0].resolver.fulfill(0)
        switch kind {
        case .all: expect(result, failsWith: Flaw(1))
        case .each: expect(result, gives: [0, -1, 2])
        case .race, .raceFulfilled: expect(result, gives: [0])
        }
    }

    @Test(.inLoop, arguments: Kind.allCases)
    func aSourceThatCancelsTheResult(kind: Kind) throws {
        let pairs = pairs(3)
        defer { withExtendedLifetime(pairs) {} }
        let box = Shared<Promise<[Int]>?>(nil)
        pairs[0].promise.pipe { _ in box.value?.cancel() }
        let result = kind.gather(pairs.map(\.promise))
        box.change { $0 = result }
        pairs[0].resolver.fulfill(0)
        expect(result, failsWith: PromiseError.cancelled)
        box.change { $0 = nil }
    }

    @Test(.inLoop, arguments: Kind.allCases)
    func theResultThatSettlesASource(kind: Kind) throws {
        let pairs = pairs(4)
        defer { withExtendedLifetime(pairs) {} }
        let result = kind.gather(pairs.map(\.promise))
        result.pipe { _ in for pair in pairs { pair.resolver.fulfill(9) } }
        for (index, pair) in pairs.enumerated() { pair.resolver.fulfill(index) }
        switch kind {
        case .race, .raceFulfilled: expect(result, gives: [0])
        default: expect(result, gives: [0, 1, 2, 3])
        }
    }

    @Test(.inLoop, arguments: Kind.allCases)
    func manySourcesAreCancelled(kind: Kind) throws {
        let naps = (0..<scaled(25_000)).map { number in after(.seconds(1)).map { number }.asPromise() }
        let result = kind.gather(naps)
        result.cancel()
        expect(loop.nextDeadline == nil && !loop.isAlive)
        expect(result, failsWith: PromiseError.cancelled)
    }
}
