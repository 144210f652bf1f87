import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// `thenMap` and `thenFlatMap`.
@Suite struct ThenMapTests {
    @Test func allAtOnceInTheirOrder() throws {
        try inLoop { loop throws in
            let all = Promise.value([3, 1, 2]).thenMap { number in after(.seconds(number)).map { number * 10 } }
            expect(all, gives: [30, 10, 20])
            #expect(loop.now.nanoseconds == 3_000_000_000)
        }
    }

    @Test func someAtATime() throws {
        try inLoop { loop throws in
            let all = Promise.value(1...4).thenMap(concurrently: 2) { number in after(.seconds(1)).map { number } }
            expect(all, gives: [1, 2, 3, 4])
            #expect(loop.now.nanoseconds == 2_000_000_000)
            let series = Promise.value(1...4).thenMap(concurrently: 1) { number in after(.seconds(1)).map { number } }
            expect(series, gives: [1, 2, 3, 4])
            #expect(loop.now.nanoseconds == 6_000_000_000)
            expect(
                Promise.value([1]).thenMap(concurrently: 0) { Promise.value($0) },
                failsWith: PromiseError.badInput("when(fulfilled:concurrently:) with 0 at a time"))
        }
    }

    @Test func strungTogether() throws {
        try inLoop { _ throws in
            let letters = Promise.value([2, 0, 3]).thenFlatMap { count in
                after(.seconds(5 - count)).map { String(repeating: "\(count)", count: count) }
            }
            expect(letters, gives: Array("22333"))
            let none = Promise.value([Int]()).thenFlatMap { _ in Promise.value([1]) }
            expect(none, gives: [])
        }
    }

    @Test func ofNothing() throws {
        try inLoop { _ throws in
            expect(Promise.value([Int]()).thenMap { Promise.value($0) }, gives: [])
            expect(Guarantee.value([Int]()).thenMap { Guarantee.value($0) }, gives: [])
            expect(Guarantee.value([Int]()).thenFlatMap { Guarantee.value([$0]) }, gives: [])
        }
    }

    @Test func guaranteesMakeAGuarantee() {
        inLoop { _ in
            let mapped: Guarantee<[Int]> = Guarantee.value([1, 2]).thenMap { number in after(.seconds(1)).map { number }
            }
            let flat: Guarantee<[Int]> = Guarantee.value([1, 2]).thenFlatMap { number in
                Guarantee.value(Array(repeating: number, count: number))
            }
            expect(mapped, gives: [1, 2])
            expect(flat, gives: [1, 2, 2])
        }
    }

    @Test func aRejectionRejects() throws {
        let lines = try logged {
            try inLoop { loop throws in
                let failing = Promise.value(1...3).thenMap { number in
                    after(.seconds(number)).map { () throws -> Int in throw Flaw(number) }
                }
                expect(failing.map { $0.count }, failsWith: Flaw(1))
                try loop.run()
                expect(Promise<[Int]>(error: Flaw(9)).thenMap { Promise.value($0) }, failsWith: Flaw(9))
                expect(Promise<[Int]>(error: Flaw(9)).thenFlatMap { Promise.value([$0]) }, failsWith: Flaw(9))
            }
        }
        #expect(lines == [])
    }

    @Test func aThrowIsARejectionOfItsElement() throws {
        let lines = try logged {
            try inLoop { loop throws in
                var begun: [Int] = []
                let body = { (number: Int) throws -> Promise<[Int]> in
                    begun.append(number)
                    if number == 3 { throw Flaw(3) }
                    return number == 2 ? Promise(error: Flaw(2)) : after(.seconds(1)).map { throw Flaw(1) }
                }
                // The one before it in the list had failed already.
                expect(Promise.value([1, 2, 3, 4]).thenMap(body), failsWith: Flaw(2))
                expect(Promise.value([1, 3, 4]).thenFlatMap(body), failsWith: Flaw(3))
                #expect(begun == [1, 2, 3, 1, 3])
                try loop.run()
            }
        }
        #expect(lines == [], "those that were begun are told of")
    }

    @Test func cancellingCancelsAll() throws {
        try inLoop { loop throws in
            let mapped = Promise.value(1...3).thenMap { after(.seconds($0)) }
            let flat = Promise.value(1...3).thenFlatMap { number in after(.seconds(number)).map { [number] } }
            let some = Promise.value(1...3).thenMap(concurrently: 2) { after(.seconds($0)) }
            try loop.turn(.poll)
            #expect(loop.nextDeadline != nil)
            mapped.cancel()
            flat.cancel()
            some.cancel()
            #expect(loop.nextDeadline == nil && mapped.isRejected && flat.isRejected && some.isRejected)
            try loop.run()
        }
    }
}
