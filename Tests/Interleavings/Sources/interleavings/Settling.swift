import Exploring
import Promises
import Reactor

// Settling promises, and their waiters.
let settling: [Scenario] = [
    onLoop("settle beside attach") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise.map { $0 + 1 }), 8)
    },
    onLoop("reject beside attach") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.reject(Failure()) }
        checkEqual(outcome(of: promise.map { $0 + 1 }), -2)
    },
    onLoop("settle beside two handlers, which run in their order") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        thread { resolver.fulfill(7) }
        let first = promise.map { _ in log.add(1) }
        try hang(promise.map { _ in log.add(2) })
        try hang(first)
        checkEqual(log.value, 12)
    },
    onLoop("settle beside a handler behind two others") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let first = promise.map { _ in log.add(1) }
        let second = promise.map { _ in log.add(2) }
        thread { resolver.fulfill(7) }
        try hang(promise.map { _ in log.add(3) })
        withExtendedLifetime((first, second)) {}
        checkEqual(log.value, 123)
    },
    onLoop("settle beside an inline handler of a third thread") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        thread { promise.pipe { _ in log.add(1) } }
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise), 7)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("handlers of two loops beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { onLoop { _ in checkEqual(try hang(promise.map { $0 + 2 }), 9) } }
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise.map { $0 + 1 }), 8)
    },
    onLoop("two resolvers settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let won = Digits()
        thread { if resolver.fulfill(1) as Bool { won.add(1) } }
        thread { if resolver.fulfill(2) as Bool { won.add(2) } }
        let value = try hang(promise)
        atEnd { checkEqual(won.value, value) }
    },
    onLoop("one resolver settles, another rejects") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(1) }
        thread { resolver.reject(Failure()) }
        checkOneOf(outcome(of: promise.map { $0 }), 1, -2)
    },
    onLoop("the last resolver is released beside attach") { _ in
        let promise = Promise<Int> { resolver in thread { withExtendedLifetime(resolver) {} } }
        checkEqual(outcome(of: promise.map { $0 }), -2)
    },
    onLoop("two copies of a resolver are released") { _ in
        let promise = Promise<Int> { resolver in
            thread { withExtendedLifetime(resolver) {} }
            thread { withExtendedLifetime(resolver) {} }
        }
        checkEqual(outcome(of: promise), -2)
    },
    onLoop("a resolver settles, its other copy is released") { _ in
        let promise = Promise<Int> { resolver in
            thread { resolver.fulfill(3) }
            thread { withExtendedLifetime(resolver) {} }
        }
        checkEqual(outcome(of: promise.map { $0 }), 3)
    },
    onLoop("a handler is attached by the last other reference") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let log = Digits()
        let ended = handOver(source.map { $0 }) { promise in thread { promise.pipe { _ in log.add(1) } } }
        resolver.fulfill(1)
        checkEqual(try hang(ended), 1)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("a rejection gets a handler by the last other reference") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let ended = handOver(source.map { $0 }) { promise in thread { promise.pipe { _ in } } }
        resolver.reject(Failure())
        checkEqual(outcome(of: ended), -2)
    },
    onLoop("a value is taken beside a copy of it") { _ in
        let (source, resolver) = Promise<[Int]>.pending()
        let promise = source.map { $0 + [2] }
        thread { onLoop { _ in checkEqual(try hang(promise.map { $0.reduce(0, +) }), 3) } }
        resolver.fulfill([1])
        let length = promise.map { array in
            var array = array
            array.append(3)
            return array.count
        }
        checkEqual(try hang(length), 3)
    },
    onLoop("the value of a promise that another thread releases") { _ in
        let tally = Tally()
        let promise = Promise.value(tally.token())
        thread { withExtendedLifetime(promise) {} }
        try hang(promise.map { $0.use() })
        tally.areReleased(anywhere: true)
    },
    onLoop("a core is used again after another thread has looked at it") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let first = handOver(source.map { $0 }) { promise in thread { checkOneOf(promise.settledValue ?? 0, 0, 1) } }
        resolver.fulfill(1)
        checkEqual(try hang(first.map { $0 + 1 }), 2)
        checkEqual(try hang(Promise.value(2).map { $0 }.map { $0 + 1 }), 3)
    },
    onLoop("a core is used again after another thread has read its value") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let first = handOver(source.map { $0 }) { promise in
            thread { onLoop { _ in checkEqual(try hang(promise.map { $0 + 1 }), 2) } }
        }
        resolver.fulfill(1)
        checkEqual(try hang(first), 1)
        for _ in 0..<3 { checkEqual(try hang(Promise.value(2).map { $0 }), 2) }
    },
    onLoop("a core is used again after another thread has named it") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let first = handOver(source.map { $0 }) { promise in thread { _ = promise.named("one") } }
        resolver.fulfill(1)
        checkEqual(try hang(first.map { $0 + 1 }), 2)
        checkEqual(try hang(Promise.value(2).map { $0 }.map { $0 + 1 }), 3)
    },
    onLoop("a core is used again after another thread has handled its rejection") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let first = handOver(source.map { $0 }) { promise in thread { promise.cauterize() } }
        resolver.reject(Failure())
        checkEqual(outcome(of: first.map { $0 }), -2)
        checkEqual(try hang(Promise.value(2).map { $0 }.map { $0 + 1 }), 3)
    },
    onLoop("the promise of nothing is made by two threads") { _ in
        thread { onLoop { _ in try hang(Promise<Void>.value.map {}) } }
        try hang(Promise<Void>.value.map {})
    },
]

/// Gives `promise` to `use`, and keeps no reference to it except a handler's.
private func handOver<T>(_ promise: Promise<T>, _ use: (Promise<T>) -> Void) -> Promise<T> {
    let ended = promise.map { $0 }
    use(promise)
    return ended
}
