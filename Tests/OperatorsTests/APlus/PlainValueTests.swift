import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.3.4
    @Suite struct PlainValueTests {
        @Test("2.3.4 a value that is no thenable fulfills", arguments: Setting.all)
        func ofEveryShape(setting: Setting) throws {
            enum Empty { case only }
            struct Pair: Equatable {
                var number: Int
                var text: String
            }
            let thing = Thing()
            try check(setting, 7) { $0 == 7 }
            try check(setting, 0) { $0 == 0 }
            try check(setting, -1.5) { $0 == -1.5 }
            try check(setting, false) { !$0 }
            try check(setting, "") { $0.isEmpty }
            try check(setting, "a text that does not fit into a few words") { $0.count == 41 }
            try check(setting, ()) { _ in true }
            try check(setting, Int?.none) { $0 == nil }
            try check(setting, Int??.some(nil)) { $0 == .some(nil) }
            try check(setting, [1, 2, 3]) { $0 == [1, 2, 3] }
            try check(setting, [Int]()) { $0.isEmpty }
            try check(setting, ["a": 1]) { $0 == ["a": 1] }
            try check(setting, (1, "b", thing)) { $0 == 1 && $1 == "b" && $2 === thing }
            try check(setting, Pair(number: 1, text: "b")) { $0 == Pair(number: 1, text: "b") }
            try check(setting, Empty.only) { $0 == .only }
            try check(setting, thing) { $0 === thing }
            try check(setting, thing as Any) { $0 as? Thing === thing }
            try check(setting, { 8 }) { $0() == 8 }
            try check(setting, Int.self) { $0 == Int.self }
        }

        @Test("2.3.4 an error as a value is a value", arguments: Setting.all)
        func anErrorAsAValue(setting: Setting) throws {
            let thing = Thing()
            try check(setting, thing as any Error) { $0 as? Thing === thing }
            try check(setting, PromiseError.cancelled) { $0 == .cancelled }
            try check(setting, Result<Int, Flaw>.failure(Flaw(1))) { $0 == .failure(Flaw(1)) }
        }

        @Test("2.3.4 map and value take a promise for a plain value and do not wait for it", arguments: Setting.all)
        func aPromiseAsAValue(setting: Setting) throws {
            let (inner, resolver) = Promise<Int>.pending()
            var outer: Promise<Promise<Int>>?
            try setting.run(.success(1)) { promise in outer = promise.map { _ in inner } }
            expect(outer?.isFulfilled == true && outer?.settledValue?.isPending == true)
            resolver.fulfill(5)
            expectEqual(outer?.settledValue?.settledValue, 5)
        }

        @Test("2.3.4 what happens to a value after settling does not happen to the promise", arguments: Setting.all)
        func isACopy(setting: Setting) throws {
            var list = [1, 2]
            var seen: [[Int]] = []
            try setting.run(.success(list)) { promise in
                list.append(3)
                promise.done {
                    var mine = $0
                    mine.append(4)
                    seen.append(mine)
                }.orFail()
                promise.done { seen.append($0) }.orFail()
            }
            expectEqual(seen, [[1, 2, 4], [1, 2]])
        }

        /// Lets a promise be fulfilled with `value`, by a resolver and by a handler that returns it.
        private func check<Value>(
            _ setting: Setting, _ value: Value, _ isRight: @escaping (Value) -> Bool,
            _ location: SourceLocation = #_sourceLocation
        ) throws {
            var seen: [Bool] = []
            try setting.run(.success(value)) { promise in
                promise.done { seen.append(isRight($0)) }.orFail()
                promise.map { $0 }.done { seen.append(isRight($0)) }.orFail()
                promise.then { Promise.value($0) }.done { seen.append(isRight($0)) }.orFail()
            }
            try setting.run(.success(())) { promise in promise.map { value }.done { seen.append(isRight($0)) }.orFail()
            }
            #expect(seen == [true, true, true, true], sourceLocation: location)
        }
    }
}
