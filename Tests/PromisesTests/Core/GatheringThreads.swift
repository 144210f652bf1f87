import Promises
import Reactor
import Testing

/// Combinators whose loop has ended, and whose sources are settled by several threads at once. Under ThreadSanitizer.
@Suite struct GatheringThreads {
    @Test(arguments: [false, true])
    func theirLoopHasEnded(isRace: Bool) {
        for _ in 0..<scaled(2000) {
            let (first, one) = Promise<Int>.pending()
            let (second, other) = Promise<Int>.pending()
            let result = Shared<Promise<Int>?>(nil)
            Strand.run {
                let gathered = isRace ? race(first, second) : when(fulfilled: [first, second]).map { $0[0] }
                gathered.ignoringErrors()
                result.change { $0 = gathered }
            }
            let (gate, otherGate) = (Gate(), Gate())
            let threads = [
                Strand {
                    gate.wait()
                    one.fulfill(1)
                },
                Strand {
                    otherGate.wait()
                    other.fulfill(2)
                },
            ]
            gate.open()
            otherGate.open()
            for thread in threads { thread.join() }
            #expect(result.value?.error as? PromiseError == .abandoned)
        }
    }
}
