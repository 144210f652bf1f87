import Exploring
import Glibc
import Promises
import Reactor

// Loops: mail, sleep, their end, and what else other threads use of them.
let loops: [Scenario] = [
    onLoop("two jobs for a loop that sleeps") { loop in
        let remote = loop.remote
        let (a, first) = Promise<Int>.pending()
        let (b, second) = Promise<Int>.pending()
        thread { check(remote.submit { first.fulfill(1) }, "refused") }
        thread { check(remote.submit { second.fulfill(2) }, "refused") }
        checkEqual(try hang(a) + hang(b), 3)
    },
    onLoop("two jobs of one thread keep their order") { loop in
        let remote = loop.remote
        let log = Digits()
        let (last, resolver) = Promise<Void>.pending()
        thread {
            remote.submit { log.add(1) }
            remote.submit {
                log.add(2)
                resolver.fulfill()
            }
        }
        try hang(last)
        checkEqual(log.value, 12)
    },
    onLoop("a job for a loop that ends") { loop in
        let remote = loop.remote
        let tally = Tally()
        thread { [token = tally.token()] in remote.submit { token.use() } }
        try loop.turn(.poll)
        tally.areReleased(anywhere: true)
    },
    onLoop("stop beside a run") { loop in
        let remote = loop.remote
        let hold = loop.hold()
        thread { remote.stop() }
        try loop.run()
        hold.cancel()
    },
    onLoop("a hold is cancelled elsewhere") { loop in
        let hold = loop.hold()
        thread { hold.cancel() }
        thread { hold.cancel() }
        try loop.run()
    },
    onLoop("external work ends beside a run") { loop in
        let remote = loop.remote
        remote.beginExternalWork()
        remote.beginExternalWork()
        thread { remote.endExternalWork() }
        thread { remote.endExternalWork() }
        try loop.run()
    },
    onLoop("external work ends beside a run, and again") { loop in
        let remote = loop.remote
        for _ in 0..<2 {
            remote.beginExternalWork()
            thread { remote.endExternalWork() }
            try loop.run()
        }
    },
    onLoop("a loop ends beside a settlement") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        thread { resolver.fulfill(7) }
        promise.done { [token = tally.token()] _ in token.use() }.cauterize()
        tally.areReleased()
    },
    onLoop("a loop ends beside a settlement for two handlers") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        thread { resolver.fulfill(7) }
        for _ in 0..<2 { promise.done { [token = tally.token()] _ in token.use() }.cauterize() }
        tally.areReleased()
    },
    onLoop("a loop of another thread ends beside a settlement") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        thread { onLoop { _ in promise.done { [token = tally.token()] _ in token.use() }.cauterize() } }
        resolver.fulfill(7)
        tally.areReleased(anywhere: true)
    },
    onLoop("a loop ends beside the release of the last resolver") { _ in
        let tally = Tally()
        let promise = Promise<Int> { resolver in thread { withExtendedLifetime(resolver) {} } }
        promise.done { [token = tally.token()] _ in token.use() }.cauterize()
        tally.areReleased()
    },
    onLoop("a loop ends beside a cancellation from elsewhere") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        let child = promise.map { [token = tally.token()] in
            token.use(); return $0
        }
        thread { child.cancel() }
        tally.areReleased()
        withExtendedLifetime(resolver) {}
    },
    Scenario("a loop ends beside the releases of its last promises") {
        weak var ended: EventLoop?
        onLoop { loop in
            ended = loop
            let (promise, resolver) = Promise<Int>.pending()
            let (other, second) = Promise<Int>.pending()
            thread { withExtendedLifetime((promise, resolver)) {} }
            thread { withExtendedLifetime((other, second)) {} }
        }
        atEnd { check(ended == nil, "nothing refers to the loop") }
    },
    Scenario("a loop ends beside a cancellation of what it does not find") {
        onLoop { loop in
            let promise = circle(loop)
            thread { promise.cancel() }
        }
    },
    Scenario("a cancellation of what two loops have left, on both threads") {
        onLoop { loop in
            let promise = circle(loop)
            thread { onLoop { _ in promise.map { $0 }.cancel() } }
        }
    },
    onLoop("a deinit that hangs while its loop ends, beside a settlement") { loop in
        let (promise, resolver) = Promise<Int>.pending()
        let object = AtRelease {
            thread { resolver.fulfill(7) }
            _ = try? hang(promise)
        }
        _ = loop.schedule(after: .seconds(100)) { object.use() }
    },
    onLoop("a deinit that attaches while its loop ends, beside a settlement") { loop in
        let (promise, resolver) = Promise<Int>.pending()
        let tally = Tally()
        let object = AtRelease {
            thread { resolver.fulfill(7) }
            promise.done { [token = tally.token()] _ in token.use() }.cauterize()
        }
        _ = loop.schedule(after: .seconds(100)) { object.use() }
        tally.areReleased()
    },
    onLoop("a deinit that cancels while its loop ends, beside a settlement") { loop in
        let child = pendingChild { resolver in thread { resolver.fulfill(7) } }
        let object = AtRelease { child.cancel() }
        loop.enqueue { object.use() }
        atEnd { check(!child.isPending, "still pending after cancel") }
    },
    onLoop("hang with a time-out beside settle") { _ in
        try withVirtualTime {
            let (promise, resolver) = Promise<Int>.pending()
            thread { resolver.fulfill(7) }
            do { checkEqual(try hang(promise, timeout: .seconds(1)), 7) } catch { check(promise.isPending || true, "") }
            do { checkEqual(try hang(promise, timeout: .seconds(1)), 7) } catch PromiseError.timedOut {}
        }
    },
    onLoop("hang beside another thread that hangs for the same promise") { _ in
        let (promise, resolver) = Promise<Int>.pending()
        thread { onLoop { _ in checkEqual(try hang(promise), 7) } }
        thread { resolver.fulfill(7) }
        checkEqual(try hang(promise), 7)
        checkEqual(try hang(Promise.value(1).map { $0 }), 1)
    },
    onLoop("a hang that times out, and the next one") { loop in
        try withVirtualTime {
            let (promise, resolver) = Promise<Int>.pending()
            let (other, second) = Promise<Int>.pending()
            thread {
                resolver.fulfill(7)
                second.fulfill(8)
            }
            _ = try? hang(promise, timeout: .seconds(1))
            checkEqual(try hang(other), 8)
        }
    },
    Scenario("a spawned loop: submit, stop, join") {
        let log = Digits()
        do {
            let worker = try EventLoop.spawn(name: "worker")
            check(worker.submit { log.add(1) }, "refused")
            worker.stop()
            worker.join()
        } catch { check(false, "\(error)") }
        checkEqual(log.value, 1)
    },
    onLoop("the end of a loop is waited for") { _ in
        let worker = try EventLoop.spawn(name: "worker")
        let ended = worker.ended
        thread { worker.stop() }
        hang(ended)
        check(worker.hasEnded, "has not ended")
    },
    onLoop("the end of two loops is waited for") { _ in
        let group = try LoopGroup(loops: 2)
        let ended = group.ended
        group.stop()
        hang(ended)
    },
    onLoop("the end of a loop beside a cancelled wait for it") { _ in
        let worker = try EventLoop.spawn(name: "worker")
        let ended = worker.ended
        thread { worker.stop() }
        ended.cancel()
        worker.join()
    },
    onLoop("collect of a group that stops") { _ in
        let group = try LoopGroup(loops: 2)
        let all = group.collect { 1 }
        thread { group.stop() }
        let values = hang(all)
        checkEqual(values.count, 2)
        group.join()
    },
    onLoop("leases of a group on two threads") { _ in
        let group = try LoopGroup(loops: 1)
        let lease = group.lease()
        thread { lease.cancel() }
        thread { lease.cancel() }
        atEnd { withExtendedLifetime(group) { checkEqual(group.loads, [0]) } }
        group.stop()
        group.join()
    },
    onLoop("a pool's thread takes a job and ends") { _ in
        let pool = try ThreadPool(threads: 1)
        let promise = Promise(on: pool) { 7 }
        checkEqual(try hang(promise), 7)
        pool.shutDown()
    },
    onLoop("two jobs of a pool, and its end") { _ in
        let pool = try ThreadPool(threads: 1)
        let log = Digits()
        try pool.dispatch { log.add(1) }
        try pool.dispatch { log.add(2) }
        pool.shutDown()
        checkEqual(log.value, 12)
    },
    onLoop("a job of a pool beside its cancellation") { _ in
        let pool = try ThreadPool(threads: 1)
        let promise = Promise(on: pool) { 7 }
        promise.cancel()
        checkOneOf(outcome(of: promise), 7, -1)
        pool.shutDown()
    },
    onLoop("a signal beside the end of its watch") { loop in
        let log = Digits()
        let former = FormerAction(of: SIGUSR2)
        let watch = try loop.onSignal(SIGUSR2) { log.add(1) }
        thread { raise(SIGUSR2) }
        watch.cancel()
        try loop.turn(.poll)
        atEnd { checkEqual(log.value + former.calls, 1) }
    },
    onLoop("a task of an executor that is bound to a loop that ends") { loop in
        let executor = ThreadBoundExecutor(loop)
        let log = Digits()
        thread { Task(executorPreference: executor) { log.add(1) } }
        try loop.turn(.poll)
    },
]
