@testable import PromisesTestSupport

struct PipeTests {
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
