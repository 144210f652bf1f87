@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.1 and 2.3.2
    struct APlusAdoptionTests {
        @Test(
            "2.3.2 settles as the promise that was returned, with each handler called once",
            arguments: Setting.all, Adopter.allCases)
        func adopts(setting: Setting, adopter: Adopter) throws {
            for outcome in outcomes {
                var calls: [String] = []
                try setting.run(outcome) { inner in
                    let outer = adopter.adopt(inner)
                    for (promise, name) in [(inner, "inner"), (outer, "outer"), (outer, "outer"), (inner, "inner")] {
                        promise.tap { calls.append("\(name) \($0)") }.ignoringErrors()
                    }
                }
                expectEqual(calls.sorted(), ["inner", "inner", "outer", "outer"].map { "\($0) \(outcome)" })
            }
        }

        // MARK: Circles

        @Test("2.3.1 a circle of up to three, of every make", .inLoop, arguments: Settling.allCases, Member.allCases)
        func circles(settling: Settling, first: Member) throws {
            try checkCircle([first], settling)
            for second in Member.allCases {
                try checkCircle([first, second], settling)
                for third in Member.allCases { try checkCircle([first, second, third], settling) }
            }
        }

        @Test("2.3.1 a long circle", .inLoop, arguments: Settling.allCases, [5, 100])
        func long(settling: Settling, length: Int) throws {
            try checkCircle((0..<length).map { Member.allCases[$0 % Member.allCases.count] }, settling)
        }

        /// Creates a circle of promises, each settling as the next, and expects all of them to be rejected for it, and
        /// their closures to be released.
        private func checkCircle(_ makes: [Member], _ settling: Settling) throws {
            let tally = Tally()
            try inLoop { loop throws in
                let (start, resolver) = Promise<Int>.pending()
                var circle: [Promise<Int>] = []
                try settling.run(loop, settle: { resolver.fulfill(1) }) {
                    circle = makes.enumerated().map { index, member in
                        let token = tally.token()
                        return member.make(start) { token.with(circle[(index + 1) % makes.count]) }
                    }
                }
                let seen = circle.map { $0.error as? PromiseError }
                expectEqual(seen, Array(repeating: .returnedSelf, count: makes.count), "\(makes)")
                expectEqual(tally.alive, 0, "\(makes)")
                circle = []
            }
        }

        @Test("2.3.1 a circle of four that is closed in any order", .inLoop, arguments: orders(of: 4))
        func closedInAnyOrder(order: [Int]) throws {
            // Handlers decide which of them are linked and which wait for one another.
            for withHandlers in 0..<16 {
                try inLoop { loop throws in
                    let pairs = order.map { _ in Promise<Void>.pending() }
                    var members: [Promise<Int>] = []
                    for (index, pair) in pairs.enumerated() {
                        members.append(pair.promise.then { members[(index + 1) % 4] })
                    }
                    var errors: [PromiseError?] = []
                    for (index, member) in members.enumerated() where withHandlers >> index & 1 == 1 {
                        member.catch { errors.append($0 as? PromiseError) }
                    }
                    for index in order {
                        pairs[index].resolver.fulfill()
                        try loop.run()
                    }
                    let seen = members.map { $0.error as? PromiseError }
                    expectEqual(seen, Array(repeating: .returnedSelf, count: 4), "handlers: \(withHandlers)")
                    expectEqual(errors, Array(repeating: .returnedSelf, count: withHandlers.nonzeroBitCount))
                    members = []
                }
            }
        }

        @Test("2.3.1 a circle through a promise that followed another before it was returned", .inLoop)
        func throughOneThatFollowedBefore() throws {
            let (first, second) = (Promise<Void>.pending(), Promise<Void>.pending())
            var end: Promise<Int>?
            let start = second.promise.then { end! }
            // Only its producer and the handler that returns it have it: so it is linked.
            var middle: Promise<Int>? = Promise.value(()).then { start }
            end = first.promise.then { middle.take()! }
            for pair in [first, second] {
                try EventLoop.current.run()
                pair.resolver.fulfill()
            }
            try EventLoop.current.run()
            expectEqual([start, end!].map { $0.error as? PromiseError }, [.returnedSelf, .returnedSelf])
            end = nil
        }
    }

    /// The ways in which a promise comes to settle as the one that a handler returns.
    enum Adopter: CaseIterable {
        case then, thenOfAGuarantee, recover, thenLater, recoverLater, outsideIn
        /// The promise that the handler is attached to, which is no circle.
        case ownSource

        func adopt(_ inner: Promise<Int>) -> Promise<Int> {
            switch self {
            case .then: return Promise.value(()).then { inner }
            case .thenOfAGuarantee: return Guarantee.value(()).then { inner }
            case .recover: return Promise<Int>(error: Flaw()).recover { _ in inner }
            case .thenLater: return after(.milliseconds(500)).then { inner }
            case .recoverLater:
                return after(.seconds(2)).then { Promise<Int>(error: Flaw()) }.recover { _ in inner }
            case .outsideIn:
                // The outermost follows the next before that one follows anything.
                return (0..<20).reduce(inner) { next, level in
                    after(.milliseconds(2000 - 100 * level)).then { next }
                }
            case .ownSource: return inner.then { _ in inner }.then { _ in inner }
            }
        }
    }

    /// The ways in which a promise can come to settle as another.
    enum Member: CaseIterable {
        case then, thenOfALinkedPromise, thenAfterMap, thenAfterEnsureThen, thenWithAHandler
        case recover, recoverAfterARejectedThen

        /// A promise that, once `start` is fulfilled, follows the one that `next` returns.
        func make(_ start: Promise<Int>, _ next: @escaping () -> Promise<Int>) -> Promise<Int> {
            switch self {
            case .then: return start.then { _ in next() }
            case .thenOfALinkedPromise: return start.then { _ in Promise.value(()).then { next() } }
            case .thenAfterMap: return start.map { $0 + 1 }.map { $0 + 1 }.then { _ in next() }
            case .thenAfterEnsureThen: return start.ensureThen { after(.milliseconds(1)) }.then { _ in next() }
            case .thenWithAHandler:
                let promise = start.then { _ in next() }
                promise.ignoringErrors()
                return promise
            case .recover: return start.map { _ -> Int in throw Flaw() }.recover { _ in next() }
            case .recoverAfterARejectedThen:
                return start.then { _ in Promise<Int>(error: Flaw()) }.ensure {}.recover { _ in next() }
            }
        }
    }
}
