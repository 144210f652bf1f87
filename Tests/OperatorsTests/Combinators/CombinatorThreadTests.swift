@testable import PromisesTestSupport

/// Combinators whose sources belong to other threads. Under ThreadSanitizer.
struct CombinatorThreadTests {
    @Test func oneSettlesWhileOthersLose() throws {
        for round in 0..<scaled(1000) {
            let pairs = (0..<6).map { _ in Promise<Int>.pending() }
            let stops = Shared(0)
            for pair in pairs { pair.resolver.onCancel { stops.change { $0 += 1 } } }
            let winner = round % 2 == 0 ? race(pairs.map(\.promise)) : race(fulfilled: pairs.map(\.promise))
            let threads = (0..<3).map { part in
                TestThread {
                    for index in stride(from: part, to: 6, by: 3) { pairs[index].resolver.fulfill(index) }
                }
            }
            let index = try hang(winner, timeout: patience)
            for thread in threads { thread.join() }
            try EventLoop.current.run()
            expectEqual(pairs[index].promise.settledValue, index)
            let cancelled = pairs.count { $0.promise.isRejected }
            expectEqual(stops.value, cancelled, "onCancel is called for those that were cancelled only")
        }
    }
}

/// Combinators whose loop has ended, with sources that several threads settle at once. Under ThreadSanitizer.
struct FanInThreadTests {
    enum Kind: CaseIterable {
        case when, resolved, race, raceFulfilled, concurrently, forEach

        func gather(_ first: Promise<Int>, _ second: Promise<Int>) -> Promise<Int> {
            switch self {
            case .when: Promises.when(fulfilled: [first, second]).map { $0[0] }
            case .resolved: Promises.when(resolved: [first, second]).map(\.count).asPromise()
            case .race: Promises.race(first, second)
            case .raceFulfilled: Promises.race(fulfilled: [first, second])
            case .concurrently:
                Promises.when(fulfilled: [first, second], concurrently: 2) { $0 }.map { $0[0] }
            case .forEach: Promises.forEach([first, second]) { $0 }.map { 1 }
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func theirLoopHasEnded(kind: Kind) {
        for _ in 0..<scaled(1000) {
            let (first, one) = Promise<Int>.pending()
            let (second, other) = Promise<Int>.pending()
            let result = Shared<Promise<Int>?>(nil)
            TestThread.run {
                let gathered = kind.gather(first, second)
                gathered.ignoringErrors()
                result.change { $0 = gathered }
            }
            let (gate, otherGate) = (Gate(), Gate())
            let threads = [
                TestThread {
                    gate.wait()
                    one.fulfill(1)
                },
                TestThread {
                    otherGate.wait()
                    other.fulfill(2)
                },
            ]
            gate.open()
            otherGate.open()
            for thread in threads { thread.join() }
            expect(result.value?.error as? PromiseError == .loopEnded)
        }
    }
}
