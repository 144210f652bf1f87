@testable import PromisesTestSupport

/// The expectations of the other tests can fail.
struct ExpectationTests {
    @Test(.inLoop) func theyFail() {
        withKnownIssue { expect(false) }
        withKnownIssue { expectEqual(1, 2) }
        withKnownIssue { expect(Promise.value(1), gives: 2) }
        withKnownIssue { expect(Promise.value(1), failsWith: Flaw(1)) }
    }
}
