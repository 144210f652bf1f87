@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.2
    struct APlusAdoptionTests {
        @Test(
            "2.3.2 pending until the promise that was returned settles, then as it, with each handler called once",
            arguments: Setting.all, Adopter.allCases)
        func adopts(setting: Setting, adopter: Adopter) throws {
            for outcome in [Result<Thing, any Error>.success(Thing()), .failure(Flaw(5))] {
                var outers: [Promise<Thing>] = []
                var calls: [String] = []
                var wasPending = setting.settling == .already
                try setting.run(outcome, beforeSettling: { wasPending = outers[0].isPending }) { inner in
                    func note(_ promise: Promise<Thing>, _ name: String) {
                        promise.ensure { calls.append(name) }.ignoringErrors()
                    }
                    note(inner, "inner")
                    outers = [adopter.adopt(inner)]
                    note(outers[0], "outer")
                    note(outers[0], "outer")
                    note(inner, "inner")
                }
                expect(wasPending)
                check(outers, outcome)
                expectEqual(calls.sorted(), ["inner", "inner", "outer", "outer"])
            }
        }

        @Test("2.3.2 adopting from the outside in", arguments: Setting.all, [2, 3, 10, 100])
        func nestedFromOutside(setting: Setting, depth: Int) throws {
            // The outermost follows the next before that one follows anything.
            for outcome in [Result<Thing, any Error>.success(Thing()), .failure(Flaw(5))] {
                var outers: [Promise<Thing>] = []
                try setting.run(outcome) { inner in
                    var starts: [Resolver<Void>] = []
                    outers = [inner]
                    for level in 0..<depth {
                        let (start, resolver) = Promise<Void>.pending()
                        starts.append(resolver)
                        outers.append(start.then { [next = outers[level]] in next })
                    }
                    for (index, start) in starts.reversed().enumerated() {
                        EventLoop.current.schedule(after: .milliseconds(index * 100)) { start.fulfill() }
                    }
                }
                check(outers, outcome)
            }
        }

        @Test("2.3.2.1, 2.3.2.2 a guarantee that is returned", arguments: Setting.all)
        func aGuarantee(setting: Setting) throws {
            let thing = Thing()
            var outers: [Guarantee<Thing>] = []
            var promises: [Promise<Thing>] = []
            var wasPending = true
            try setting.run(thing) { inner in
                if setting.settling != .already { wasPending = inner.isPending }
                outers = [
                    Guarantee.value(()).then { inner },
                    Promise<Thing>(error: Flaw()).recover { _ in inner },
                    after(.milliseconds(10)).then { Guarantee.value(()).then { inner } },
                ]
                outers.append(Guarantee.value(()).then { [last = outers[2]] in last })
                promises = [
                    Promise.value(()).then { inner },
                    Promise.value(()).then { Promise(inner) },
                    firstly { inner }.asPromise(),
                ]
            }
            expect(wasPending)
            let all = outers.map(\.settledValue) + promises.map(\.settledValue)
            let right = all.filter { $0 === thing }.count
            expect(right == 7 && all.count == 7)
        }

        private func check(_ promises: [Promise<Thing>], _ outcome: Result<Thing, any Error>) {
            switch outcome {
            case .success(let thing):
                let right = promises.filter { $0.settledValue === thing }.count
                expectEqual(right, promises.count)
            case .failure:
                let right = promises.filter { $0.flaw == Flaw(5) }.count
                expectEqual(right, promises.count)
            }
        }
    }

    /// The operators by which a promise comes to settle as the one that a handler returns.
    enum Adopter: CaseIterable {
        case then, thenOfAGuarantee, recover, thenLater, recoverLater

        func adopt<Value>(_ inner: Promise<Value>) -> Promise<Value> {
            switch self {
            case .then: Promise.value(()).then { inner }
            case .thenOfAGuarantee: Guarantee.value(()).then { inner }
            case .recover: Promise<Value>(error: Flaw()).recover { _ in inner }
            case .thenLater: after(.milliseconds(500)).then { inner }
            case .recoverLater:
                after(.seconds(2)).then { Promise<Value>(error: Flaw()) }.recover { _ in inner }
            }
        }
    }
}
