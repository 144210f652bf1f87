import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `conf.abandoned` is about promises whose last resolver went, and not about loops that end.
@Suite struct LoopEndPolicyTests {
    // A process of its own: the policy is the process's.
    @Test func theEndOfALoopRejectsUnderEachPolicy() async {
        await #expect(processExitsWith: .success) {
            for policy in [AbandonPolicy.log, .trap, .reject] {
                conf.abandoned = policy
                let ended = Bodies.promiseOfAnEndedLoop()
                precondition(ended.error as? PromiseError == .loopEnded, "\(policy): \(ended)")
                let awaited = await Bodies.awaitedErrorOfALoopThatEnds()
                precondition(awaited as? PromiseError == .loopEnded, "\(policy): \(String(describing: awaited))")
            }
        }
    }

    private enum Bodies {
        static func promiseOfAnEndedLoop() -> Promise<Int> {
            let promises = Shared<[Promise<Int>]>([])
            TestThread.run {
                let mapped = after(.seconds(3600)).map { 1 }.asPromise()
                promises.change { $0 = [mapped] }
            }
            return promises.value[0]
        }

        static func awaitedErrorOfALoopThatEnds() async -> (any Error)? {
            let promises = Shared<[Promise<Int>]>([])
            let (made, end) = (Gate(), Gate())
            let thread = TestThread {
                let mapped = after(.seconds(3600)).map { 1 }.asPromise()
                promises.change { $0 = [mapped] }
                made.open()
                end.wait()
            }
            let promise = {
                made.wait(); return promises.value[0]
            }()
            // The loop may also end before the wait begins.
            let task = Task { () -> (any Error)? in
                do { _ = try await promise.value } catch { return error }
                return nil
            }
            end.open()
            defer { thread.join() }
            return await task.value
        }
    }
}
