import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A promise that a handler returns is linked to the one it settles, so recursion takes constant memory.
@Suite struct RecursionTests {
    private let tally = Tally()
    private let depth = scaled(20_000)

    /// Expects that the levels of a recursion do not accumulate, by counting the captures of their handlers.
    private func check(_ body: (Int) -> Promise<Int>) {
        inLoop { _ in expect(body(depth), gives: 0) }
        expectEqual(tally.alive, 0)
        expect(tally.peak < 20)
    }

    @Test func throughThenOnASettledPromise() {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise.value(left).then { left -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : step(left - 1)
            }
        }
        check(step)
    }

    @Test func throughThenOnAPendingPromise() {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return after(.milliseconds(1)).then { () -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : step(left - 1)
            }
        }
        check(step)
    }

    @Test func throughAGuarantee() {
        func step(_ left: Int) -> Guarantee<Int> {
            let token = tally.token()
            return after(.milliseconds(1)).then { () -> Guarantee<Int> in
                token.use()
                return left == 0 ? .value(0) : step(left - 1)
            }
        }
        check { step($0).asPromise() }
    }

    @Test func throughRecover() {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise<Int>(error: Flaw(left)).recover { _ -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : step(left - 1)
            }
        }
        check(step)
    }

    @Test func throughAChainOfOperatorsALevel() {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise.value(left).map { $0 - 1 }.get { _ in token.use() }
                .then { left in left < 0 ? Promise.value(0) : step(left) }
        }
        check(step)
    }

    @Test func throughThenAndEnsureThen() {
        // The cleanup of each level holds the outcome; none may be kept.
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise.value(left).ensureThen { after(.milliseconds(1)).done { token.use() } }
                .then { left in left == 0 ? Promise.value(0) : step(left - 1) }
        }
        check(step)
    }

    @Test func mutual() {
        func ping(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise.value(()).then { () -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : pong(left - 1)
            }
        }
        func pong(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return Promise<Int>(error: Flaw()).recover { _ -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : ping(left - 1)
            }
        }
        check(ping)
    }

    @Test func thatEndsInARejection() {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return after(.milliseconds(1)).then { () throws -> Promise<Int> in
                token.use()
                if left == 0 { throw Flaw(7) }
                return step(left - 1)
            }
        }
        inLoop { _ in expect(step(depth), failsWith: Flaw(7)) }
        expect(tally.alive == 0 && tally.peak < 20)
    }

    @Test func withAHandlerOnTheOutermost() throws {
        func step(_ left: Int) -> Promise<Int> {
            let token = tally.token()
            return after(.zero).then { () -> Promise<Int> in
                token.use()
                return left == 0 ? .value(0) : step(left - 1)
            }
        }
        try inLoop { loop throws in
            var ended = 0
            let promise = step(depth)
            promise.done { _ in ended += 1 }.orFail()
            promise.done { _ in ended += 1 }.orFail()
            try loop.run()
            expectEqual(ended, 2)
        }
        expect(tally.alive == 0 && tally.peak < 20)
    }
}

@Suite struct LinkingMemoryTests {
    // In a separate process: the others here allocate too. Forwarding instead of linking takes 270 bytes per level.
    @Test(.ownThread, .disabled(if: isSanitized)) func recursionIsFlat() async {
        await #expect(processExitsWith: .success) { try measureRecursion() }
    }

    @Test(.ownThread, .disabled(if: isSanitized)) func recursionInAVariableIsFlat() async {
        await #expect(processExitsWith: .success) { try measureRecursionInAVariable() }
    }
}

/// A variable holds the promise of the present level, so no promise is linked.
private func measureRecursionInAVariable() throws {
    var current: Promise<Int>?
    func step(_ left: Int) -> Promise<Int> {
        let next = after(.milliseconds(1)).map { left }.then { $0 == 0 ? Promise.value(0) : step($0 - 1) }
        current = next
        return next
    }
    let depth = scaled(500_000)
    try inLoop { _ throws in
        _ = try hang(step(10_000))
        let before = residentBytes()
        _ = try hang(step(depth))
        let growth = residentBytes() - before
        precondition(growth < depth * 20, "\(growth) bytes for \(depth) levels")
        withExtendedLifetime(current) {}
    }
}

private func measureRecursion() throws {
    // Nothing throws here: the test library keeps a backtrace of each thrown error.
    func step(_ left: Int) -> Promise<Int> {
        after(.milliseconds(1)).then { left % 3 == 0 ? Promise(error: Flaw()) : Promise.value(left) }
            .recover { _ in Promise.value(left) }
            .ensure {}
            .then { $0 == 0 ? Promise.value(0) : step($0 - 1) }
    }
    let depth = scaled(500_000)
    try inLoop { _ throws in
        _ = try hang(step(10_000))
        let before = residentBytes()
        _ = try hang(step(depth))
        let growth = residentBytes() - before
        precondition(growth < depth * 20, "\(growth) bytes for \(depth) levels")
    }
}
