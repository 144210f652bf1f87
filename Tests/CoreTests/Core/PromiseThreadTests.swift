@testable import PromisesTestSupport

struct PromiseThreadTests {
    @Test func eachThreadHasItsOwnHandlersOfOnePromise() {
        let (promise, resolver) = Promise<Int>.pending()
        let ready = Gate()
        let right = Shared(0)
        let threads = (0..<4).map { _ in
            TestThread {
                let here = pthread_self()
                let hold = EventLoop.current.hold()
                var calls = 0
                promise.done { _ in if pthread_equal(pthread_self(), here) != 0 { calls += 1 } }.orFail()
                let ended = promise.done { _ in if pthread_equal(pthread_self(), here) != 0 { calls += 1 } }
                ready.open()
                try? hang(ended)
                hold.cancel()
                let count = calls
                right.change { $0 += count }
            }
        }
        for _ in threads { ready.wait() }
        resolver.fulfill(1)
        for thread in threads { thread.join() }
        expectEqual(right.value, 8)
    }
}

@Suite(.serialized) struct ThreadEndTests {
    /// The log of a thread that runs `body`, at its end.
    private func logOfThread(_ body: @escaping @Sendable () -> Void) -> [String] {
        let thread = Shared<pthread_t?>(nil)
        let recorder = LogRecorder(where: { event in
            guard case .undeliveredHandlers = event, let thread = thread.value else { return false }
            return pthread_equal(pthread_self(), thread) != 0
        })
        defer { recorder.stop() }
        TestThread.run {
            let here = pthread_self()
            thread.change { $0 = here }
            body()
        }
        return recorder.lines
    }

    @Test func withHandlersThatWait() {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        let lines = logOfThread {
            for _ in 0..<3 {
                let token = tally.token()
                promise.map { value in
                    token.use()
                    return value
                }.ignoringErrors()
            }
        }
        // Three maps, and the catch of each.
        expectEqual(lines, ["an event loop ended with 6 undelivered handlers"])
        expectEqual(tally.alive, 0)
        resolver.fulfill(1)
        expectEqual(promise.settledValue, 1)
    }

    @Test(.inRealTime) func thoseThatWaitElsewhereAreTold() throws {
        let loop = EventLoop.current
        let hold = loop.hold()
        let (source, resolver) = Promise<Int>.pending()
        let derived = Shared<Promise<Int>?>(nil)
        let lines = logOfThread { derived.change { $0 = source.map { $0 + 1 } } }
        expectEqual(lines.count, 1)
        let here = derived.value!.map { $0 + 1 }
        derived.change { $0 = nil }
        resolver.fulfill(1)
        expect(here, failsWith: PromiseError.loopEnded)
        hold.cancel()
    }
}
