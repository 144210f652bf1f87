@testable import PromisesTestSupport

/// `on: nil`: inline, where the promise is settled.
struct OnNilTests {
    @Test(.inLoop) func runsInsideTheCallThatSettlesOrAttaches() {
        let seen = Shared<[Int]>([])
        let (promise, resolver) = Promise<Int>.pending()
        let end = promise.map(on: nil) { value in
            seen.change { $0.append(value) }
            return value + 1
        }.then(on: nil) { Promise.value($0 * 2) }.get(on: nil) { value in seen.change { $0.append(value) } }
        expectEqual(seen.value, [])
        resolver.fulfill(1)
        expect(seen.value == [1, 4] && end.settledValue == 4)
        expectEqual(end.map(on: nil) { $0 + 1 }.settledValue, 5)
    }

    @Test(.inLoop) func oneAfterTheOtherAndNotOneInsideTheOther() {
        let log = Shared<[String]>([])
        let (promise, resolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<Int>.pending()
        second.done(on: nil) { _ in log.change { $0.append("second") } }.orFail()
        promise.done(on: nil) { _ in
            log.change { $0.append("first begins") }
            secondResolver.fulfill(2)
            log.change { $0.append("first ends") }
        }.orFail()
        resolver.fulfill(1)
        expectEqual(log.value, ["first begins", "first ends", "second"])
    }

    /// The ready jobs end the `hang`, or a turn of the loop does.
    @Test(.inLoop, arguments: [false, true]) func aHangInOneLetsThoseThatWaitRunAndLaterOnesWait(needsTurn: Bool) {
        let log = Shared<[String]>([])
        let (promise, resolver) = Promise<Int>.pending()
        let (second, secondResolver) = Promise<Int>.pending()
        let (third, thirdResolver) = Promise<Int>.pending()
        second.done(on: nil) { _ in log.change { $0.append("second") } }.orFail()
        third.done(on: nil) { _ in log.change { $0.append("third") } }.orFail()
        promise.done(on: nil) { _ in
            secondResolver.fulfill(2)
            try hang(needsTurn ? after(.zero).asPromise() : Promise.value(1).asVoid())
            log.change { $0.append("hung") }
            thirdResolver.fulfill(3)
            log.change { $0.append("first ends") }
        }.orFail()
        resolver.fulfill(1)
        expectEqual(log.value, ["second", "hung", "first ends", "third"])
    }
}
