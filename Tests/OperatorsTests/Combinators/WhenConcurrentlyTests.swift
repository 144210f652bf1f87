@testable import PromisesTestSupport

/// `when(fulfilled:concurrently:)`.
struct WhenConcurrentlyTests {
    private let loop = EventLoop.current

    @Test(.inLoop, arguments: [1, 2, 3, 5, 100]) func soManyAtATime(limit: Int) throws {
        let site = Site()
        let all = when(fulfilled: 0..<10, concurrently: limit) { site.work($0) }
        expectEqual(site.running, min(limit, 10), "the first ones, at once")
        expect(all, gives: Array(0..<10))
        expectEqual(site.peak, min(limit, 10))
        expectEqual(loop.now.nanoseconds, Int64((10 + limit - 1) / limit) * 1_000_000_000)
    }

    @Test(.inLoop) func iteratorsAreAskedWhenThereIsRoom() throws {
        let pairs = (0..<4).map { _ in Promise<Int>.pending() }
        var asked = 0
        let iterator = AnyIterator<Promise<Int>> {
            defer { asked += 1 }
            return asked < 4 ? pairs[asked].promise : nil
        }
        let all = when(fulfilled: iterator, concurrently: 2) { $0 }
        expectEqual(asked, 2)
        pairs[1].resolver.fulfill(1)
        expectEqual(asked, 2, "not inside the settlement")
        try loop.run()
        expectEqual(asked, 3)
        for index in [2, 0, 3] { pairs[index].resolver.fulfill(index) }
        expect(all, gives: [0, 1, 2, 3])
        expectEqual(asked, 5, "the last one found it empty, and no further one is taken")
    }

    @Test(.inLoop, arguments: [0, -1, Int.min]) func withNoRoomAtAll(limit: Int) {
        var asked = 0
        let work = { (number: Int) -> Promise<Int> in
            asked += 1
            return .value(number)
        }
        let error = when(fulfilled: [1, 2], concurrently: limit, work).error
        expectEqual(asked, 0)
        expect(error as? PromiseError == .badInput("when(fulfilled:concurrently:) with \(limit) at a time"))
    }

    @Test(.inLoop) func aRejectionEndsIt() throws {
        let lines = try loggedInLoop { loop throws in
            let site = Site()
            let all = when(fulfilled: 0..<10, concurrently: 3) { number in
                site.work(number, seconds: number == 1 ? 1 : 2).map { number throws -> Int in
                    guard number % 2 == 0 else { throw Flaw(number) }
                    return number
                }
            }
            expect(all, failsWith: Flaw(1))
            expect(loop.now.nanoseconds == 1_000_000_000 && site.running == 2)
            try loop.run()
            // The others continued, and nothing new was started.
            expect(site.begun == 3 && site.running == 0)
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop, arguments: [false, true]) func valuesAndErrorsAreReleasedWithTheResult(fails: Bool) throws {
        struct Heavy: Error { let token: Tally.Token }
        let tally = Tally()
        do {
            let all = when(fulfilled: 0..<4, concurrently: 2) { number -> Promise<Tally.Token> in
                fails && number == 2 ? Promise(error: Heavy(token: tally.token())) : .value(tally.token())
            }
            expectEqual((try? hang(all))?.count, fails ? nil : 4)
        }
        expect(tally.alive == 0 && tally.peak > 0)
    }

    @Test(.inLoop) func aThrowIsARejection() throws {
        var begun: [Int] = []
        let body = { (number: Int) throws -> Promise<Int> in
            begun.append(number)
            guard number % 2 == 0 else { throw Flaw(number) }
            return .value(number)
        }
        let all = when(fulfilled: 0..<10, concurrently: 2, body)
        expectEqual(all.flaw, Flaw(1))
        expect(all, failsWith: Flaw(1))
        expectEqual(begun, [0, 1])
    }

    enum Failure: CaseIterable { case thrown, returned, returnedInsideAHandler, ofThePrevious, behindAValue }

    @Test(.inLoop, arguments: Failure.allCases) func nothingBeginsAfterARejection(_ failure: Failure) {
        var begun = 0
        let pairs = (0..<2).map { _ in Promise<Int>.pending() }
        var all: Promise<[Int]>?
        let start = {
            all = when(fulfilled: 0..<50, concurrently: failure == .behindAValue ? 2 : 50) { number throws in
                begun += 1
                switch failure {
                case .thrown: throw Flaw(0)
                case .returned, .returnedInsideAHandler: return Promise<Int>(error: Flaw(0))
                case .ofThePrevious: if number == 1 { pairs[0].resolver.reject(Flaw(0)) }
                case .behindAValue: break
                }
                return number < 2 ? pairs[number].promise : endless()
            }
        }
        let loop = EventLoop.current
        if failure == .returnedInsideAHandler {
            loop.jobs.runInline(.passRetained(InternalJob(start)))
        } else {
            start()
        }
        if failure == .behindAValue {
            pairs[0].resolver.fulfill(1)
            pairs[1].resolver.reject(Flaw(0))
        }
        expect(all!, failsWith: Flaw(0))
        expectEqual(begun, failure == .ofThePrevious || failure == .behindAValue ? 2 : 1)
        pairs[1].resolver.fulfill(1)
        pairs[0].resolver.fulfill(1)
    }

    @Test(.inLoop) func whatIsSettledLeavesTurnsToOthers() throws {
        let count = scaled(100_000)
        var begun = 0
        let all = when(fulfilled: 0..<count, concurrently: 4) { number -> Promise<Int> in
            begun += 1
            return .value(number)
        }
        expectEqual(begun, 4)
        let turns = loop.metrics.turns
        let values = try hang(all)
        expect(values.elementsEqual(0..<count))
        // Each is a job, and a turn runs 1024 of them twice.
        expect(loop.metrics.turns - turns >= count / 2048)
    }

    @Test(.inLoop) func sourcesAreNotKept() throws {
        let tally = Tally()
        let all = when(fulfilled: 0..<100, concurrently: 5) { number -> Promise<Int> in
            let token = tally.token()
            return after(.seconds(1)).map {
                token.use()
                return number
            }.asPromise()
        }
        expect(all, gives: Array(0..<100))
        expect(tally.peak <= 6)
    }
}

/// Runs operations that take a second.
private final class Site {
    private(set) var begun = 0
    private(set) var running = 0
    private(set) var peak = 0

    func work(_ number: Int, seconds: Int = 1) -> Guarantee<Int> {
        begun += 1
        running += 1
        peak = max(peak, running)
        return after(.seconds(seconds)).map { [self] in
            running -= 1
            return number
        }
    }
}
