@testable import PromisesTestSupport

/// Tasks that wait while several threads settle, cancel and drop at once. Under ThreadSanitizer.
struct AwaitRaceTests {
    /// One promise, its waiting tasks, and their ends.
    private final class Case: Sendable {
        let index: Int
        let promise: Promise<Int>
        let resolver: Shared<Resolver<Int>?>
        private let outcomes = Shared<[Result<Int, any Error>]>([])

        init(_ index: Int) {
            let (promise, resolver) = Promise<Int>.pending()
            self.index = index
            self.promise = promise
            self.resolver = Shared(resolver)
        }

        func wait() async {
            do {
                let value = try await promise.value
                outcomes.change { $0.append(.success(value)) }
            } catch { outcomes.change { $0.append(.failure(error)) } }
        }

        /// Settles it finally.
        func end() {
            switch index % 4 {
            case 0: resolver.value?.fulfill(index)
            case 1: resolver.value?.reject(Flaw(index))
            case 2: resolver.change { $0 = nil }
            default: promise.cancel()
            }
        }

        /// Checks that each task has ended once, with a valid outcome.
        func check(tasks: Int, isCancelled: Bool) {
            let all = outcomes.value
            expectEqual(all.count, tasks, "case \(index)")
            var interrupted = 0
            for outcome in all {
                switch outcome {
                case .success(let value): expect(value == index && index % 4 == 0)
                case .failure(let flaw as Flaw): expect(flaw == Flaw(index) && index % 4 == 1)
                case .failure(PromiseError.abandoned): expectEqual(index % 4, 2)
                // By `cancel()`, or since another task withdrew before this one waited.
                case .failure(PromiseError.cancelled): expect(index % 4 == 3 || isCancelled)
                case .failure(is CancellationError): interrupted += 1
                case .failure(let error): Issue.record(error)
                }
            }
            expect(interrupted <= (isCancelled ? 1 : 0), "case \(index)")
            // So its error counts as handled.
            expect(promise.result != nil)
        }
    }

    @Test func eachAwaitEndsOnce() async {
        let recorder = LogRecorder(where: { event in
            if case .abandoned(let promise) = event { promise.callSite?.file == #fileID } else { false }
        })
        defer { recorder.stop() }
        for _ in 0..<scaled(50) {
            let cases = (0..<60).map(Case.init)
            // Two of three cases have a task that is cancelled, and one of five has a task that is not.
            let cancelled = cases.map { one in one.index % 3 == 0 ? nil : Task { await one.wait() } }
            let others = cases.map { one in one.index % 5 == 0 ? Task { await one.wait() } : nil }
            let threads = [
                TestThread { for one in cases { one.end() } },
                TestThread { for task in cancelled { task?.cancel() } },
                // The cases that the first thread reaches last.
                TestThread { for one in cases.reversed() where one.index % 2 == 0 { one.end() } },
            ]
            for task in cancelled + others { await task?.value }
            for thread in threads { thread.join() }
            for one in cases {
                let isCancelled = one.index % 3 != 0
                one.check(tasks: (isCancelled ? 1 : 0) + (one.index % 5 == 0 ? 1 : 0), isCancelled: isCancelled)
            }
        }
    }

    /// The same with a loop of another thread that settles, and receives each cancellation by a job.
    @Test func promisesOfALoop() async {
        let driver = Driver()
        for _ in 0..<scaled(50) {
            let promises = await driver.run {
                (0..<40).map { index in after(.microseconds(index % 8 * 20)).map { index }.asPromise() }
            }
            let ends = Shared(0)
            let tasks = promises.map { promise in
                Task {
                    defer { ends.change { $0 += 1 } }
                    return try await promise.value
                }
            }
            let thread = TestThread { for task in tasks { task.cancel() } }
            for (index, task) in tasks.enumerated() {
                switch await task.result {
                case .success(let value): expectEqual(value, index)
                case .failure(let error): expect(error is CancellationError)
                }
            }
            thread.join()
            expectEqual(ends.value, promises.count)
            // The jobs of the cancellations come before this: no timer is left.
            let isIdle = await driver.run { EventLoop.current.nextDeadline == nil }
            expect(isIdle)
        }
        driver.end()
    }
}
