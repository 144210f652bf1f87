@testable import PromisesTestSupport

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
