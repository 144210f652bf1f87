@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.1
    struct APlusCircleTests {
        private let loop = EventLoop.current

        @Test("2.3.1 a circle of up to three, of every make", .inLoop, arguments: Settling.allCases, Member.allCases)
        func circles(settling: Settling, first: Member) throws {
            try checkCircle([first], settling)
            for second in Member.allCases {
                try checkCircle([first, second], settling)
                for third in Member.allCases { try checkCircle([first, second, third], settling) }
            }
        }

        @Test("2.3.1 a long circle", .inLoop, arguments: Settling.allCases, [4, 5, 16, 100])
        func long(settling: Settling, length: Int) throws {
            let makes = Member.allCases
            try checkCircle((0..<length).map { makes[$0 % makes.count] }, settling)
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
                    let seen = members.map(\.promiseError)
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
                try loop.run()
                pair.resolver.fulfill()
            }
            try loop.run()
            expectEqual([start, end!].map(\.promiseError), [.returnedSelf, .returnedSelf])
            end = nil
        }

        @Test("2.3.1 nothing of a circle is leaked", .inLoop, arguments: Settling.allCases, 1...4)
        func nothingIsLeaked(settling: Settling, length: Int) throws {
            let tally = Tally()
            try inLoop { loop throws in
                let (start, resolver) = Promise<Void>.pending()
                var circle: [Promise<Int>] = []
                try settling.run(loop, settle: { resolver.fulfill() }) {
                    circle = (0..<length).map { index in
                        let token = tally.token()
                        let member = start.then { () -> Promise<Int> in
                            token.use()
                            return circle[(index + 1) % length]
                        }
                        member.catch { _ in token.use() }
                        return member
                    }
                }
                let seen = circle.map(\.promiseError)
                expectEqual(seen, Array(repeating: .returnedSelf, count: length))
                expectEqual(tally.alive, 0)
                circle = []
            }
        }

        @Test(
            "2.3.1 returning the promise that the handler is attached to is no circle", .inLoop, arguments: Setting.all)
        func theOneBefore(setting: Setting) throws {
            var results: [Promise<Int>] = []
            try setting.run(.success(1)) { promise in
                results.append(promise.then { _ in promise })
                results.append(results[0].then { _ in promise })
                results.append(results[1].then { [first = results[0]] _ in first })
            }
            let values = results.map(\.settledValue)
            expectEqual(values, [1, 1, 1])
        }

        /// Creates a circle of promises, each settling as the next, and expects all of them to be rejected for it.
        private func checkCircle(_ makes: [Member], _ settling: Settling) throws {
            try inLoop { loop throws in
                let (start, resolver) = Promise<Int>.pending()
                var circle: [Promise<Int>] = []
                try settling.run(loop, settle: { resolver.fulfill(1) }) {
                    circle = makes.enumerated().map { index, member in
                        member.make(start) { circle[(index + 1) % makes.count] }
                    }
                }
                let seen = circle.map(\.promiseError)
                expectEqual(seen, Array(repeating: .returnedSelf, count: makes.count), "\(makes)")
                circle = []
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
