@testable import PromisesTestSupport

private func half(_ number: Int) throws -> Int {
    guard number % 2 == 0 else { throw Flaw(number) }
    return number / 2
}

/// The operators with `on:`, one by one: their results, what they pass on, and where they run.
struct OnOperatorTests {
    private var loop: EventLoop { .current }
    private let pool = ThreadPool.shared
    private let failed = Promise<Int>(error: Flaw(1))

    @Test(.inLoop) func map() {
        expect(Promise.value(4).map(on: pool) { try half($0) }, gives: 2)
        expect(Promise.value(4).map(on: pool, half), gives: 2)
        expect(Promise.value(3).map(on: pool, half), failsWith: Flaw(3))
        expect(failed.map(on: pool, half), failsWith: Flaw(1))
        expect(Guarantee.value(4).map(on: pool, half), gives: 2)
        let sure: Guarantee<String> = Guarantee.value(4).map(on: pool) { number in
            let text = "\(number)"
            return text + text
        }
        expect(sure, gives: "44")
    }

    @Test(.inLoop) func compactMap() {
        expect(Promise.value("4").compactMap(on: pool) { Int($0) }, gives: 4)
        expect(
            Promise.value("four").compactMap(on: pool) { Int($0) },
            failsWith: PromiseError.compactMap(value: "four", type: "Int"))
        expect(failed.compactMap(on: pool) { $0 as Int? }, failsWith: Flaw(1))
    }

    @Test(.inLoop) func then() {
        expect(Promise.value(4).then(on: pool) { Promise.value($0 + 1) }, gives: 5)
        expect(Promise.value(4).then(on: pool) { Guarantee.value($0 + 1) }, gives: 5)
        expect(Promise.value(4).then(on: pool) { _ in failed }, failsWith: Flaw(1))
        expect(Promise.value(3).then(on: pool) { Promise.value(try half($0)) }, failsWith: Flaw(3))
        expect(failed.then(on: pool) { Promise.value($0) }, failsWith: Flaw(1))
        let sure: Guarantee<Int> = Guarantee.value(4).then(on: pool) { .value($0 + 1) }
        expect(sure, gives: 5)
    }

    @Test(.inLoop) func doneAndGet() throws {
        let seen = Shared<[Int]>([])
        try hang(Promise.value(1).done(on: pool) { value in seen.change { $0.append(value) } })
        expect(Promise.value(2).get(on: pool) { value in seen.change { $0.append(value) } }, gives: 2)
        expect(Promise.value(2).get(on: pool) { _ in throw Flaw(2) }, failsWith: Flaw(2))
        expect(failed.get(on: pool) { _ in seen.change { $0.append(99) } }, failsWith: Flaw(1))
        hang(Guarantee.value(3).done(on: pool) { value in seen.change { $0.append(value) } })
        expect(Guarantee.value(4).get(on: pool) { value in seen.change { $0.append(value) } }, gives: 4)
        expectEqual(seen.value, [1, 2, 3, 4])
    }

    @Test(.inLoop) func tapAndEnsure() {
        let seen = Shared<[String]>([])
        let note: @Sendable (Result<Int, any Error>) -> Void = { result in seen.change { $0.append("\(result)") } }
        expect(Promise.value(1).tap(on: pool, note), gives: 1)
        expect(failed.tap(on: pool, note), failsWith: Flaw(1))
        expect(Guarantee.value(2).tap(on: pool, note), gives: 2)
        expect(Promise.value(3).ensure(on: pool) { seen.change { $0.append("ensure") } }, gives: 3)
        expect(failed.ensure(on: pool) { seen.change { $0.append("ensure") } }, failsWith: Flaw(1))
        expect(seen.value.count == 5 && seen.value[0] == "success(1)" && seen.value[4] == "ensure")
    }

    @Test(.inLoop) func catching() throws {
        let seen = Shared<[String]>([])
        for error in [Flaw(1), PromiseError.cancelled] as [any Error] {
            for policy in [CatchPolicy.allErrors, .allErrorsExceptCancellation] {
                Promise<Int>(error: error).catch(on: pool, policy: policy) { error in
                    seen.change { $0.append("\(error)") }
                }.finally { seen.change { $0.append("finally") } }
                try loop.run()
            }
        }
        failed.catch(on: pool) { error in seen.change { $0.append("\(error)") } }
        Promise.value(1).catch(on: pool) { error in seen.change { $0.append("never \(error)") } }
        try loop.run()
        let flaw = "\(Flaw(1))"
        expectEqual(
            seen.value,
            [flaw, "finally", flaw, "finally", "\(PromiseError.cancelled)", "finally", "finally", flaw])
    }

    @Test(.inLoop) func recover() {
        expect(failed.recover(on: pool) { _ in Promise.value(2) }, gives: 2)
        expect(failed.recover(on: pool) { _ -> Promise<Int> in throw Flaw(2) }, failsWith: Flaw(2))
        let cancelled = Promise<Int>(error: PromiseError.cancelled)
        expect(cancelled.recover(on: pool) { _ in Promise.value(2) }, failsWith: PromiseError.cancelled)
        expect(cancelled.recover(on: pool, policy: .allErrors) { _ in Promise.value(2) }, gives: 2)
        expect(Promise.value(1).recover(on: pool) { _ in Promise.value(2) }, gives: 1)
        let sure: Guarantee<Int> = cancelled.recover(on: pool) { _ in .value(3) }
        expect(sure, gives: 3)
        let same: Guarantee<Int> = Promise.value(1).recover(on: pool) { _ in .value(3) }
        expect(same, gives: 1)
    }

    @Test(.inLoop) func recoverOfVoid() throws {
        let failed = Promise<Void>(error: Flaw(1))
        let seen = Shared(0)
        let sure: Guarantee<Void> = failed.recover(on: pool) { _ in seen.change { $0 += 1 } }
        hang(sure)
        let thrown: Promise<Void> = failed.recover(on: pool) { _ in throw Flaw(2) }
        let error = hangs(thrown)
        expect(error as? Flaw == Flaw(2) && seen.value == 1)
    }

    private func hangs(_ promise: Promise<Void>) -> (any Error)? {
        do {
            try hang(promise)
            return nil
        } catch { return error }
    }

    @Test(.inLoop) func aLoopThatHasEnded() {
        let remote = TestThread.run { EventLoop.current.remote }
        expect(Promise.value(1).map(on: remote) { $0 }, failsWith: DispatchError.loopEnded)
    }

    /// A rejection that the handler does not handle does not go through the dispatcher.
    @Test(.inLoop) func whatPassesByIsNotDispatched() {
        let shelf = Shelf()
        expectEqual(failed.map(on: shelf) { $0 }.flaw, Flaw(1))
        expectEqual(Promise.value(1).recover(on: shelf) { _ in Promise.value(2) }.settledValue, 1)
        expectEqual(shelf.count, 0)
    }
}
