import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// A resource that counts its uses.
final class Item {
    let number: Int
    let key: PoolKey
    var users = 0
    var uses = 0
    var closes = 0

    init(_ number: Int, _ key: PoolKey) {
        self.number = number
        self.key = key
    }
}

/// Creates and closes the items of a pool.
final class Workshop {
    private(set) var items: [Item] = []
    var making: () throws -> Promise<Void> = { .value }

    func make(_ key: PoolKey) throws -> Promise<Item> {
        try making().map { [self] in
            items.append(Item(items.count, key))
            return items[items.count - 1]
        }
    }

    /// A pool of items.
    func pool(
        _ limits: PoolLimits = PoolLimits(), check: ((Item) throws -> Promise<Void>)? = nil,
        keepsAfter: @escaping (any Error) -> Bool = { _ in false }
    ) -> Pool<Item> {
        Pool(limits: limits, make: make, check: check, close: { $0.closes += 1 }, keepsAfter: keepsAfter)
    }

    /// Expects that each item was closed once, and none is in use.
    func expectAllClosed(_ location: SourceLocation = #_sourceLocation) {
        let areClosed = items.allSatisfy { $0.closes == 1 && $0.users == 0 }
        #expect(areClosed, "\(items.map(\.closes))", sourceLocation: location)
    }
}

/// `after` for async functions that run on the loop.
func pause(_ milliseconds: Int) -> Promise<Void> { after(.milliseconds(milliseconds)).asPromise() }
