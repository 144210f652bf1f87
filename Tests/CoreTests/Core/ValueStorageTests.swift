@testable import PromisesTestSupport

/// Values of every size and kind are stored in a promise and released with it: 24 bytes fit inside, larger ones take a
/// block.
struct ValueStorageTests {
    /// Sends `value` through settling, two handlers, a link, `when`, `recover` and a rejected path.
    private func check<T>(_ value: T, _ isSame: @escaping (T) -> Bool, _ location: SourceLocation = #_sourceLocation) {
        inLoop { loop in
            var seen = 0
            func expectSame(_ promise: Promise<T>) {
                promise.done { if isSame($0) { seen += 1 } }.orFail(location)
            }
            expectSame(.value(value))
            let (pending, resolver) = Promise<T>.pending()
            expectSame(pending)
            expectSame(pending.map { $0 })
            expectSame(pending.then { Promise.value($0) })
            expectSame(Promise.value(()).then { pending })
            expectSame(pending.get { _ in }.ensure {})
            expectSame(pending.ensureThen { after(.seconds(1)) })
            expectSame(Promise<T>(error: Flaw()).recover { _ in pending })
            expectSame(race(pending.map { $0 }, pending))
            expectSame(when(fulfilled: [pending, pending]).map { $0[1] })
            expectSame(when(fulfilled: pending, pending).map { first, _ in first })
            expectSame(Guarantee.value(value).asPromise())
            loop.schedule(after: .seconds(1)) { resolver.fulfill(value) }
            let (refused, refuser) = Promise<T>.pending()
            refused.map { $0 }.ignoringErrors()
            refuser.reject(Flaw())
            do { try loop.run() } catch { Issue.record(error, sourceLocation: location) }
            #expect(seen == 12, sourceLocation: location)
        }
    }

    private func check<T: Equatable>(_ value: T, _ location: SourceLocation = #_sourceLocation) {
        check(value, { $0 == value }, location)
    }

    @Test func ofEverySize() {
        check((), { true })
        check(true)
        check(42)
        check(UInt8(7))
        check(2.5)
        check(UInt64.max)
        check((1, 2, 3), { $0 == (1, 2, 3) })
        check("small")
        check("a string that is too long to be stored inside its own two words")
        check([UInt8](repeating: 7, count: 100))
        check([1: "one", 2: "two"])
        check((1, 2, 3, UInt8(4)), { $0 == (1, 2, 3, 4) })
        check((1, 2, 3, 4, 5, 6, 7), { $0.6 == 7 && $0.0 == 1 })
        check(("a", "b", "a string that is too long for its own two words"), { $0.2.hasPrefix("a string") })
        check(SIMD4<Float>(1, 2, 3, 4))
        check(SIMD8<Double>(repeating: 5))
        check((UInt8(1), SIMD4<Int32>(1, 2, 3, 4)), { $0.0 == 1 && $0.1.w == 4 })
        check(Int?.none)
        check(Int?.some(1))
        check(Int??.some(.none))
        check(String?.none)
        check([Int]?.some([1]))
    }

    @Test func ofEveryKind() {
        enum Shape: Equatable {
            case point, circle(Double), polygon([Int]), named(String, [String])
            indirect case scaled(Shape, by: Double)
        }
        for shape in [Shape.point, .circle(1), .polygon([1, 2]), .named("a", ["b"]), .scaled(.point, by: 2)] {
            check(shape)
        }
        check(1 as Any, { $0 as? Int == 1 })
        check((1, 2, 3, 4, 5) as Any, { ($0 as? (Int, Int, Int, Int, Int))?.4 == 5 })
        check(Flaw(3) as any Error, { ($0 as? Flaw) == Flaw(3) })
        check("text" as any CustomStringConvertible & Sendable, { $0.description == "text" })
        let base = 10
        check({ (number: Int) in number + base }, { $0(1) == 11 })
        check(Int.self as Any.Type, { $0 == Int.self })
        check(Promise.value(3), { $0.settledValue == 3 })
        check(Result<Int, Flaw>.failure(Flaw(1)), { $0 == .failure(Flaw(1)) })
    }

    @Test func objectsAreReleasedAsOftenAsTheyAreRetained() {
        struct Small { let token: Tally.Token }
        struct Big {
            let numbers: (Int, Int, Int, Int) = (1, 2, 3, 4)
            let token: Tally.Token
            let text = "a string that is too long to be stored inside its own two words"
        }
        enum Either { case left(Tally.Token), right(Int, Tally.Token) }
        let tally = Tally()
        check(tally.token(), { _ in true })
        check(Small(token: tally.token()), { _ in true })
        check(Big(token: tally.token()), { $0.numbers.3 == 4 })
        check(Either.right(1, tally.token()), { if case .right(1, _) = $0 { true } else { false } })
        check([tally.token(), tally.token()], { $0.count == 2 })
        check(Optional(tally.token()), { $0 != nil })
        check(tally.token() as Any, { $0 is Tally.Token })
        check(weakly(tally.token()), { $0() })
        expectEqual(tally.alive, 0)
    }

    private func weakly(_ token: Tally.Token) -> () -> Bool {
        {
            token.use()
            return true
        }
    }

    @Test func errorsAreReleased() throws {
        struct Loaded: Error {
            let token: Tally.Token
            let more = (1, 2, 3, 4)
        }
        let tally = Tally()
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            promise.catch { _ in }
            promise.map { $0 }.ignoringErrors()
            Promise.value(()).then { promise }.recover { Promise<Int>(error: $0) }.ignoringErrors()
            promise.ensureThen { .value }.ignoringErrors()
            when(fulfilled: [promise, promise]).ignoringErrors()
            when(fulfilled: [promise, promise], concurrently: 2) { $0 }.ignoringErrors()
            try loop.turn(.poll)
            resolver.reject(Loaded(token: tally.token()))
            resolver.reject(Loaded(token: tally.token()))
            try loop.run()
            expectEqual(tally.alive, 1)
        }
        expectEqual(tally.alive, 0)
    }
}
