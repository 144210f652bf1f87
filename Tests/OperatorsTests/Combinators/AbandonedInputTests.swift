import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// Combinators of promises that will never be settled, where those stay pending.
@Suite struct AbandonedInputTests {
    // In a process of its own: the whole process shares the policy.
    @Test func theRestMayStillBeCancelled() async {
        await #expect(processExitsWith: .success) {
            conf.abandoned = .log
            conf.logHandler = { _ in }
            try inLoop { loop in
                for isRace in [false, true] {
                    let (abandoned, itsResolver) = Promise<Int>.pending()
                    let late = Promise<Int>.pending().promise
                    let (other, otherResolver) = Promise<Int>.pending()
                    let sources = [abandoned, late, other]
                    let result = isRace ? race(sources).asVoid() : when(fulfilled: sources).asVoid()
                    _ = consume itsResolver
                    try loop.run()
                    precondition(result.isPending && other.isPending)
                    result.cancel()
                    precondition(other.isRejected)
                    withExtendedLifetime(otherResolver) {}
                }
            }
        }
    }
}
