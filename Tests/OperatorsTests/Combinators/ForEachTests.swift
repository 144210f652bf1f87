@testable import PromisesTestSupport

/// `forEach` and `thenReduce`.
struct ForEachTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func oneAfterTheOther() throws {
        var log: [String] = []
        let body = { (number: Int) -> Promise<String> in
            log.append("begin \(number)")
            return after(.seconds(1)).map { "\(number)" }.asPromise().get { log.append("end \($0)") }
        }
        let end = forEach([3, 1, 2], body)
        expectEqual(log, ["begin 3"], "the first at once")
        try hang(end)
        expectEqual(log, ["begin 3", "end 3", "begin 1", "end 1", "begin 2", "end 2"])
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
    }

    @Test(.inLoop) func folding() throws {
        let text = Promise.value(["a", "b", "c"]).thenReduce("-") { text, letter in
            after(.seconds(1)).map { text + letter }
        }
        expect(text, gives: "-abc")
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
        let sum = Guarantee.value(1...4).thenReduce(0) { sum, number in Guarantee.value(sum + number) }
        expect(sum, gives: 10)
    }

    @Test(.inLoop) func aRejectionEndsIt() throws {
        var begun: [Int] = []
        let body = { (number: Int) throws -> Promise<Int> in
            begun.append(number)
            if number == 2 { throw Flaw(2) }
            return number == 4 ? Promise(error: Flaw(4)) : .value(number)
        }
        expect(forEach(1..., body), failsWith: Flaw(2))
        expect(forEach([2, 1], body), failsWith: Flaw(2))
        expect(forEach([1, 4, 1], body), failsWith: Flaw(4))
        expect(Promise.value([1, 3, 1]).thenReduce(0) { try body($0 + $1) }, failsWith: Flaw(4))
        expectEqual(begun, [1, 2, 2, 1, 4, 1, 4])
        expect(Promise<[Int]>(error: Flaw(9)).thenReduce(0) { try body($0 + $1) }, failsWith: Flaw(9))
        expectEqual(begun.count, 7)
    }

    @Test(.inLoop) func itemsAreTakenWhenTheirTurnComes() throws {
        var made = 0
        let items = sequence(first: 1) { last -> Int? in
            made += 1
            return last < 4 ? last + 1 : nil
        }
        var turns: [[Int]] = []
        try hang(
            forEach(items) { item -> Guarantee<Void> in
                turns.append([item, made])
                return after(.seconds(1))
            })
        expectEqual(turns, [[1, 0], [2, 1], [3, 2], [4, 3]])
        expectEqual(made, 4)
    }

    @Test(.inLoop) func cancellingClimbsToTheItemAtHand() throws {
        let tally = Tally()
        var begun: [Int] = []
        func series() -> [Promise<Int>] {
            let token = tally.token()
            let body = { (number: Int) -> Guarantee<Int> in
                token.use()
                begun.append(number)
                return after(.seconds(1)).map { number }
            }
            return [
                forEach(1..., { body($0).asPromise() }).map { 0 },
                Promise.value(10...).then { forEach($0) { body($0).asPromise() } }.map { 0 },
                Promise.value(20...).thenReduce(0) { body($0 * 0 + $1).asPromise() },
            ]
        }
        let all = series()
        hang(after(.milliseconds(2500)))
        expectEqual(begun.sorted(), [1, 2, 3, 10, 11, 12, 20, 21, 22])
        for promise in all { promise.cancel() }
        expectEqual(loop.nextDeadline, nil)
        try loop.run()
        expect(all.allSatisfy(\.isRejected) && tally.alive == 0)
        expectEqual(begun.count, 9)
    }

    @Test(.inLoop) func cancelledByItsOwnBody() throws {
        var result: Promise<Void>?
        var begun = 0
        let series = forEach(1...) { number -> Promise<Int> in
            begun += 1
            if number == 3 { result?.cancel() }
            return after(.seconds(1)).map { number }.asPromise()
        }
        result = series
        expect(series, failsWith: PromiseError.cancelled)
        expect(begun == 3 && loop.nextDeadline == nil, "what the body returned then is cancelled too")
    }

    @Test(.inLoop) func anItemThatComesTooLateGoesOnForAHandlerThatHasReturnedItBefore() throws {
        let shared = after(.seconds(1)).map { 5 }.asPromise()
        let first = after(.zero).then { shared }
        hang(after(.milliseconds(1)))
        // `shared` is merged with `first` now, which has no listener yet.
        var result: Promise<Int>?
        let series = after(.zero).asPromise().map { [1, 2] }.thenReduce(0) { _, _ -> Promise<Int> in
            result?.cancel()
            return shared
        }
        result = series
        hang(after(.milliseconds(1)))
        expect(series.isCancelled && shared.isPending)
        expect(first, gives: 5)
    }

    @Test(.inLoop) func itsOwnPromiseAsAnItem() throws {
        var own: Promise<Void>?
        let series = forEach([1, 2]) { number -> Promise<Void> in number == 1 ? .value : own! }
        own = series
        expect(series, failsWith: PromiseError.returnedSelf)
        var sum: Promise<Int>?
        let fold = Promise.value([1, 2]).thenReduce(0) { total, _ in sum! }
        sum = fold
        expect(fold, failsWith: PromiseError.returnedSelf)
    }
}

/// `thenMap`.
struct ThenMapTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func allAtOnceInTheirOrder() throws {
        let all = Promise.value([3, 1, 2]).thenMap { number in after(.seconds(number)).map { number * 10 } }
        expect(all, gives: [30, 10, 20])
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
    }

    @Test(.inLoop) func aRejectionRejects() throws {
        let lines = try loggedInLoop { loop throws in
            let failing = Promise.value(1...3).thenMap { number in
                after(.seconds(number)).map { () throws -> Int in throw Flaw(number) }
            }
            expect(failing.map { $0.count }, failsWith: Flaw(1))
            try loop.run()
            expect(Promise<[Int]>(error: Flaw(9)).thenMap { Promise.value($0) }, failsWith: Flaw(9))
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func aThrowIsARejectionOfItsElement() throws {
        let lines = try loggedInLoop { loop throws in
            var begun: [Int] = []
            let body = { (number: Int) throws -> Promise<[Int]> in
                begun.append(number)
                if number == 3 { throw Flaw(3) }
                return number == 2 ? Promise(error: Flaw(2)) : after(.seconds(1)).map { throw Flaw(1) }
            }
            // The previous one in the list had already failed.
            expect(Promise.value([1, 2, 3, 4]).thenMap(body), failsWith: Flaw(2))
            expectEqual(begun, [1, 2, 3])
            try loop.run()
        }
        expectEqual(lines, [])
    }
}

/// `repeatWhile`.
struct RepeatTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func asLongAsItGivesTrue() throws {
        var rounds = 0
        let end = repeatWhile { () -> Promise<Bool> in
            rounds += 1
            return after(.seconds(1)).map { rounds < 4 }.asPromise()
        }
        expectEqual(rounds, 1, "the first at once")
        try hang(end)
        expect(rounds == 4 && loop.now.nanoseconds == 4_000_000_000)
    }

    @Test(.inLoop) func anErrorEndsIt() throws {
        var left = 3
        let thrown = repeatWhile { () throws -> Promise<Bool> in
            left -= 1
            if left == 0 { throw Flaw(1) }
            return .value(true)
        }
        expect(thrown, failsWith: Flaw(1))
        expectEqual(left, 0)
        expectEqual(repeatWhile { () throws -> Promise<Bool> in throw Flaw(2) }.flaw, Flaw(2))
        expect(repeatWhile { Promise<Bool>(error: Flaw(3)) }, failsWith: Flaw(3))
    }

    @Test(.inLoop) func anEndlessOneLeavesTurnsToOthers() throws {
        var rounds = 0
        let endless = repeatWhile { () -> Promise<Bool> in
            rounds += 1
            return .value(true)
        }
        hang(after(.zero))
        expect(rounds < 10_000)
        endless.cancel()
        let before = rounds
        try loop.run()
        expect(rounds == before && endless.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop) func cancellingStopsTheRoundAtHand() throws {
        let tally = Tally()
        var stops = 0
        let endless = { () -> Promise<Void> in
            let token = tally.token()
            return repeatWhile { () -> Promise<Bool> in
                token.use()
                return Promise<Bool> { resolver in
                    resolver.onCancel { stops += 1 }
                    loop.schedule(after: .seconds(1)) { resolver.fulfill(true) }.unref()
                }
            }
        }()
        hang(after(.milliseconds(3500)))
        endless.cancel()
        try loop.run()
        expect(endless.isRejected && tally.alive == 0)
        expectEqual(stops, 1)
    }
}
