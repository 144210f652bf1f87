import Exploring
import Promises
import Reactor

// Combinators, dispatchers and tasks.
let combining: [Scenario] = [
    onLoop("when: two threads settle") { _ in
        let (a, first) = Promise<Int>.pending()
        let (b, second) = Promise<Int>.pending()
        thread { first.fulfill(1) }
        thread { second.fulfill(2) }
        checkEqual(try hang(when(fulfilled: a, b).map { $0 + $1 }), 3)
    },
    onLoop("when: one input fails beside another that is settled") { _ in
        let (a, first) = Promise<Int>.pending()
        let (b, second) = Promise<Int>.pending()
        thread { first.reject(Failure()) }
        thread { second.fulfill(2) }
        checkEqual(outcome(of: when(fulfilled: [a, b]).map { $0[0] }), -2)
    },
    onLoop("when: cancelled beside a settlement") { _ in
        let (a, first) = Promise<Int>.pending()
        let both = when(fulfilled: [a, Promise.value(1)]).map { $0[0] }
        thread { first.fulfill(2) }
        both.cancel()
        checkOneOf(outcome(of: both), 2, -1)
    },
    onLoop("when, limited: inputs that other threads settle") { _ in
        let (a, first) = Promise<Int>.pending()
        let (b, second) = Promise<Int>.pending()
        thread { first.fulfill(1) }
        thread { second.fulfill(2) }
        checkEqual(try hang(when(fulfilled: [a, b], concurrently: 1) { $0 }.map { $0.reduce(0, +) }), 3)
    },
    onLoop("race: two threads settle") { _ in
        let (a, first) = Promise<Int>.pending()
        let (b, second) = Promise<Int>.pending()
        thread { first.fulfill(1) }
        thread { second.fulfill(2) }
        checkOneOf(try hang(race([a, b])), 1, 2)
    },
    onLoop("race: the loser is cancelled beside its settlement") { _ in
        let (a, first) = Promise<Int>.pending()
        let b = Promise.value(2).map { $0 }
        thread { first.fulfill(1) }
        checkOneOf(try hang(race([a.map { $0 }, b])), 1, 2)
    },
    onLoop("forEach: each step is settled by another thread") { _ in
        let (a, first) = Promise<Int>.pending()
        let log = Digits()
        thread { first.fulfill(1) }
        try hang(forEach([1, 2]) { item in a.map { _ in log.add(item) } })
        checkEqual(log.value, 12)
    },
    onLoop("map on a dispatcher beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise.map(on: OwnThreads()) { $0 + 1 }), 8)
    },
    onLoop("map on a dispatcher beside cancel") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        resolver.fulfill(7)
        let child = promise.map(on: OwnThreads()) { $0 + 1 }
        child.cancel()
        checkOneOf(outcome(of: child), 8, -1)
    },
    onLoop("map on a dispatcher that releases the job") { _ in
        let child = Promise.value(7).map(on: NoThread()) { $0 + 1 }
        checkEqual(outcome(of: child.map { $0 }), -2)
    },
    onLoop("then on a dispatcher: the inner promise is settled elsewhere") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let child = Promise.value(1).then(on: OwnThreads()) { _ in inner }
        thread { resolver.fulfill(5) }
        checkEqual(try hang(child), 5)
    },
    onLoop("map inline beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise.map(on: nil) { $0 + 1 }), 8)
    },
    onLoop("map inline beside settle and cancel") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        let child = { [token = tally.token()] in
            promise.map(on: nil) { value in
                token.use()
                return value + 1
            }
        }()
        thread { resolver.fulfill(7) }
        child.cancel()
        checkOneOf(outcome(of: child), 8, -1)
        tally.areReleased(anywhere: true)
    },
    onLoop("no inline closure begins after its cancellation") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.map(on: nil) { value in
            log.add(1)
            return value + 1
        }
        thread { resolver.fulfill(7) }
        child.cancel()
        let begun = log.value
        checkOneOf(outcome(of: child), -1, begun == 1 ? 8 : -1)
    },
    onLoop("no handler begins after a cancellation that an inline one lets pass") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.recover(on: nil) { _ in Promise.value(5) }.map { _ in log.add(1) }.map { 0 }
        thread { resolver.fulfill(7) }
        child.cancel()
        checkEqual(outcome(of: child), -1)
        checkEqual(log.value, 0)
    },
    onLoop("a dispatched handler returns a promise beside cancel") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let child = Promise.value(1).then(on: OwnThreads()) { _ in inner }
        child.cancel()
        checkEqual(outcome(of: child), -1)
        withExtendedLifetime(resolver) {}
    },
    onLoop("two threads cancel an inline clean-up") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.tap(on: nil) { _ in log.add(1) }.map(on: nil) { $0 }
        thread { child.cancel() }
        child.cancel()
        checkEqual(outcome(of: child), -1)
        withExtendedLifetime(resolver) {}
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("a clean-up on a dispatcher beside settle and cancel") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.tap(on: OwnThreads()) { _ in log.add(1) }
        thread { resolver.fulfill(7) }
        child.cancel()
        checkOneOf(outcome(of: child), 7, -1)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("recover on a dispatcher beside reject and cancel") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let child = promise.recover(on: OwnThreads()) { _ in Promise.value(5) }
        thread { resolver.reject(Failure()) }
        child.cancel()
        checkOneOf(outcome(of: child), 5, -1)
    },
    onLoop("inline handlers of an inline map beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.map(on: nil) { $0 + 1 }
        thread { resolver.fulfill(7) }
        for _ in 0..<2 { child.map(on: nil) { _ in log.add(1) }.cauterize() }
        atEnd { checkEqual(log.value, 11) }
    },
    onLoop("what a dispatched handler has returned is cancelled beside settle") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let child = Promise.value(1).then(on: nil) { _ in inner }
        thread { resolver.fulfill(5) }
        child.cancel()
        checkOneOf(outcome(of: child), 5, -1)
    },
    onLoop("names beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise.map { $0 }.named("one").map { $0 + 1 }), 8)
    },
    onLoop("traces beside settle") { _ in
        conf.trace = true
        defer { conf.trace = false }
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        let child = promise.map { $0 }.then { Promise.value($0) }
        thread { check(!"\(child)".isEmpty, "no description") }
        checkEqual(try hang(child), 7)
    },
    onLoop("await beside settle") { loop in
        let (promise, resolver) = Promise<Int>.pending()
        let (answer, answered) = Promise<Int>.pending()
        Task(executorPreference: loop.remote) { answered.fulfill((try? await promise.value) ?? -2) }
        thread { resolver.fulfill(7) }
        checkEqual(try hang(answer), 7)
    },
    onLoop("await in a task that is cancelled beside settle") { loop in
        let (promise, resolver) = Promise<Int>.pending()
        let (answer, answered) = Promise<Int>.pending()
        let task = Task(executorPreference: loop.remote) { answered.fulfill((try? await promise.value) ?? -1) }
        thread { resolver.fulfill(7) }
        loop.remote.submit { inOneStep { task.cancel() } }
        checkOneOf(try hang(answer), 7, -1)
    },
]
