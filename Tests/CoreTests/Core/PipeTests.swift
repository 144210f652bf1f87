@testable import PromisesTestSupport

struct PipeTests {
    @Test func runsAtOnceOnASettledPromise() {
        let seen = Shared<[String]>([])
        Promise.value(1).pipe { result in seen.change { $0.append("\(try! result.get())") } }
        Promise<Int>(error: Flaw(2)).pipe { result in
            if case .failure(let error as Flaw) = result { seen.change { $0.append("flaw \(error.number)") } }
        }
        Guarantee.value(3).pipe { result in seen.change { $0.append("\(try! result.get())") } }
        expectEqual(seen.value, ["1", "flaw 2", "3"])
    }

    @Test(.inLoop) func beforeTheQueuedHandlersButNotInTheirPlace() throws {
        let loop = EventLoop.current
        let seen = Shared<[String]>([])
        let (promise, resolver) = Promise<Int>.pending()
        promise.done { _ in seen.change { $0.append("first") } }.orFail()
        promise.pipe { _ in seen.change { $0.append("pipe") } }
        promise.done { _ in seen.change { $0.append("second") } }.orFail()
        resolver.fulfill(1)
        expectEqual(seen.value, ["pipe"])
        try loop.run()
        expectEqual(seen.value, ["pipe", "first", "second"])
    }

    @Test func aHandlerMaySettleAndAttach() {
        let seen = Shared<[String]>([])
        let (promise, resolver) = Promise<Int>.pending()
        let (other, otherResolver) = Promise<Int>.pending()
        other.pipe { _ in seen.change { $0.append("other") } }
        promise.pipe { _ in
            seen.change { $0.append("first") }
            otherResolver.fulfill(2)
            promise.pipe { _ in seen.change { $0.append("late") } }
            promise.pipe { _ in seen.change { $0.append("later") } }
            resolver.fulfill(3)
        }
        promise.pipe { _ in seen.change { $0.append("second") } }
        resolver.fulfill(1)
        // The handlers of one promise keep their order; the other's may come between them, but none runs inside
        // another.
        let own = seen.value.filter { $0 != "other" }
        expectEqual(own, ["first", "second", "late", "later"])
        expectEqual(seen.value.count, 5)
        expectEqual(promise.settledValue, 1)
    }

    @Test func aMillionDeepDoesNotRecurse() {
        let count = scaled(125_000)
        let pairs = (0..<count).map { _ in Promise<Void>.pending() }
        for index in 1..<count {
            let next = pairs[index].resolver
            pairs[index - 1].promise.pipe { next.resolve($0) }
        }
        pairs[0].resolver.fulfill()
        expect(pairs[count - 1].promise.isFulfilled)
    }
}
