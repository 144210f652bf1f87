@testable import PromisesTestSupport

/// `thenMap`.
struct ThenMapTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func allAtOnceInTheirOrder() throws {
        let all = Promise.value([3, 1, 2]).thenMap { number in after(.seconds(number)).map { number * 10 } }
        expect(all, gives: [30, 10, 20])
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
    }

    @Test(.inLoop) func ofNothing() throws {
        expect(Promise.value([Int]()).thenMap { Promise.value($0) }, gives: [])
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
        expectEqual(lines, [], "those that were begun are told of")
    }

    @Test(.inLoop) func cancellingCancelsAll() throws {
        let mapped = Promise.value(1...3).thenMap { after(.seconds($0)) }
        try loop.turn(.poll)
        expect(loop.nextDeadline != nil)
        mapped.cancel()
        expect(loop.nextDeadline == nil && mapped.isRejected)
        try loop.run()
    }
}
