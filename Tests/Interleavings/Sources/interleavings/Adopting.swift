import Exploring
import Reactor

@testable import Promises

// Promises that handlers return, and cancellations.
let adopting: [Scenario] = [
    onLoop("a handler returns a promise that is settled elsewhere") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(5) }
        checkEqual(try hang(Promise.value(1).then { _ in inner }), 5)
    },
    onLoop("a link of a link beside settle") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(5) }
        let outer = Promise.value(1).then { _ in Promise.value(2).then { _ in inner.map { $0 + 1 } } }
        checkEqual(try hang(outer.map { $0 }), 6)
    },
    onLoop("another thread waits for a promise that is linked") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let outer = Promise.value(1).then { _ in inner.map { $0 } }
        thread { onLoop { _ in checkEqual(try hang(outer.map { $0 + 1 }), 6) } }
        resolver.fulfill(5)
        checkEqual(try hang(outer), 5)
    },
    onLoop("a handler returns a promise of another loop, which nothing else waits for") { loop in
        let (source, resolver) = Promise<Int>.pending()
        let inner = source.map { $0 + 1 }
        thread { onLoop { _ in checkEqual(try hang(Promise.value(1).then { _ in inner }), 6) } }
        resolver.fulfill(5)
        try loop.run()
    },
    onLoop("a promise is linked beside a question about it") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let middle = inner.map { $0 }
        thread { checkOneOf(middle.isPending ? 0 : middle.isFulfilled ? 1 : 2, 0, 1) }
        let outer = Promise.value(1).then { _ in middle }
        resolver.fulfill(5)
        checkEqual(try hang(outer), 5)
    },
    onLoop("a handler returns a promise that another thread gives up") { _ in
        let (source, resolver) = Promise<Int>.pending()
        let log = Digits()
        var inner: Promise<Int>? = source.map { $0 + 1 }
        giveAway(inner) { inner in thread { inner?.pipe { _ in log.add(1) } } }
        let outer = Promise.value(1).then { _ in inner.take() ?? .value(0) }
        Promise.value(1).done { _ in resolver.fulfill(5) }.cauterize()
        checkEqual(try hang(outer), 6)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("a handler returns a promise that another thread marks and gives up") { loop in
        let (source, resolver) = Promise<Int>.pending()
        var inner: Promise<Int>? = source.map { $0 + 1 }
        let core = CoreRef(inner!.core)
        giveAway(inner) { inner in thread { inner?.core.annotate(.isDetached) } }
        let outer = Promise.value(1).then { _ in inner.take() ?? .value(0) }
        try loop.turn(.poll)
        // The source's list still holds it.
        check(core.borrow { !$0.state.load().isLink || !$0.has(.isDetached) }, "a marked promise was linked")
        resolver.fulfill(5)
        checkEqual(try hang(outer), 6)
    },
    onLoop("a handler that has returned a promise is cancelled beside a handler of that") { loop in
        let (source, resolver) = Promise<Int>.pending()
        let log = Digits()
        let attached = Digits()
        var inner: Promise<Int>? = source.map { $0 + 1 }
        giveAway(inner) { inner in
            thread {
                inner?.pipe { log.add((try? $0.get()) == 6 ? 1 : 2) }
                attached.add(1)
            }
        }
        let outer = Promise.value(1).then { _ in inner.take() ?? .value(0) }
        try loop.turn(.poll)
        let isAttached = attached.value == 1
        outer.cancel()
        resolver.fulfill(5)
        try loop.run()
        atEnd { checkOneOf(log.value, 1, isAttached ? 1 : 2) }
    },
    onLoop("a handler returns a promise that another thread cancels and gives up") { _ in
        let (source, resolver) = Promise<Int>.pending()
        var inner: Promise<Int>? = source.map { $0 + 1 }
        giveAway(inner) { inner in thread { inner?.cancel() } }
        let outer = Promise.value(1).then { _ in inner.take() ?? .value(0) }
        Promise.value(1).done { _ in resolver.fulfill(5) }.cauterize()
        checkOneOf(outcome(of: outer), 6, -1)
    },
    onLoop("cancel beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { resolver.fulfill(7) }
        let child = promise.map { $0 + 1 }
        child.cancel()
        checkEqual(outcome(of: child), -1)
    },
    onLoop("a chain is cancelled beside the settlement of its work") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.map { $0 + 1 }.ensure { log.add(1) }.done { _ in log.add(2) }.map { 0 }
        thread { resolver.fulfill(7) }
        child.cancel()
        checkEqual(outcome(of: child), -1)
        checkEqual(log.value, 1)
    },
    onLoop("a chain is cancelled beside its work, which has a clean-up") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        resolver.onCancelThen {
            log.add(1)
            return .value
        }
        let child = promise.ensure { log.add(2) }.map { $0 }
        thread { promise.cancel() }
        child.cancel()
        checkEqual(outcome(of: child), -1)
        checkEqual(log.value, 12)
        withExtendedLifetime(resolver) {}
    },
    onLoop("cancel beside a settlement that releases the source") { _ in
        let child = pendingChild { resolver in thread { resolver.fulfill(7) } }
        child.cancel()
        checkEqual(outcome(of: child), -1)
    },
    onLoop("cancel on another thread beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let child = promise.map { $0 + 1 }
        thread { child.cancel() }
        resolver.fulfill(7)
        checkOneOf(outcome(of: child), 8, -1)
    },
    onLoop("cancel of an external promise on two threads") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        resolver.onCancel { log.add(1) }
        thread { promise.cancel() }
        thread { resolver.fulfill(7) }
        let value = outcome(of: promise)
        atEnd { checkOneOf(log.value, 0, value == -1 ? 1 : 0) }
    },
    onLoop("cancel of one handler of two beside settle") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let one = promise.map { $0 + 1 }
        let other = promise.map { $0 + 2 }
        thread { resolver.fulfill(7) }
        one.cancel()
        checkEqual(try hang(other), 9)
        checkEqual(outcome(of: one), -1)
    },
    onLoop("cancel of a linked promise on another thread") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let middle = inner.map { $0 }
        let outer = Promise.value(1).then { _ in middle }
        thread { outer.cancel() }
        resolver.fulfill(5)
        checkOneOf(outcome(of: outer), 5, -1)
    },
    onLoop("cancel of what is being linked") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let middle = inner.map { $0 }
        thread { middle.cancel() }
        let outer = Promise.value(1).then { _ in middle }
        thread { resolver.fulfill(5) }
        checkOneOf(outcome(of: outer), 5, -1)
    },
    onLoop("cancel beside the release of the last resolver") { _ in
        let promise = Promise<Int> { resolver in thread { withExtendedLifetime(resolver) {} } }
        let child = promise.map { $0 }
        child.cancel()
        checkOneOf(outcome(of: child), -1, -2)
    },
    onLoop("two handlers are cancelled on their own loops") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { onLoop { _ in promise.map { $0 }.cancel() } }
        promise.map { $0 }.cancel()
        atEnd {
            withExtendedLifetime(resolver) {
                check(promise.isCancelled, "the promise is wanted by nobody, and goes on")
            }
        }
    },
    onLoop("a sweep beside a handler and a settlement") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let kept = promise.map { $0 }
        for _ in 0..<15 { promise.map { $0 }.cancel() }
        let log = Digits()
        thread { promise.pipe { _ in log.add(1) } }
        thread { resolver.fulfill(7) }
        promise.map { $0 }.cancel()
        checkEqual(try hang(kept), 7)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("a sweep beside two settlements") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let won = Digits()
        let kept = promise.map { $0 }
        for _ in 0..<15 { promise.map { $0 }.cancel() }
        thread { if resolver.fulfill(1) as Bool { won.add(1) } }
        thread { if resolver.fulfill(2) as Bool { won.add(2) } }
        promise.map { $0 }.cancel()
        let value = try hang(kept)
        atEnd { checkEqual(won.value, value) }
    },
    onLoop("a linked promise is released on two threads") { _ in
        let (inner, resolver) = Promise<Int>.pending()
        let middle = inner.map { $0 }
        let outer = Promise.value(1).then { _ in middle }
        thread { withExtendedLifetime(middle) {} }
        thread { withExtendedLifetime(outer) {} }
        resolver.fulfill(5)
    },
    onLoop("a question whether a promise is wanted beside a handler") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.map { $0 }
        thread { promise.pipe { _ in log.add(1) } }
        child.cancel()
        resolver.fulfill(7)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("a question whether a promise is wanted beside a settlement") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        promise.pipe { _ in log.add(1) }
        let child = promise.map { $0 }
        thread { resolver.fulfill(7) }
        child.cancel()
        checkOneOf(outcome(of: promise), 7)
        atEnd { checkEqual(log.value, 1) }
    },
    onLoop("clean-ups of a promise that is cancelled elsewhere") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let log = Digits()
        let child = promise.ensure { log.add(1) }.map { $0 }
        thread { child.cancel() }
        thread { resolver.fulfill(7) }
        checkOneOf(outcome(of: child), 7, -1)
        checkEqual(log.value, 1)
    },
    onLoop("a clean-up that waits beside a cancellation") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let (cleaned, end) = Guarantee<Void>.pending()
        let child = promise.ensureThen { cleaned }
        thread { end(()) }
        thread { resolver.fulfill(7) }
        child.cancel()
        checkOneOf(outcome(of: child), 7, -1)
    },
]

/// The copy that `use` receives ends with it.
private func giveAway<T>(_ promise: Promise<T>?, _ use: (Promise<T>?) -> Void) { use(promise) }
