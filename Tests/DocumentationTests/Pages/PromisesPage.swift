// Made by .ci/snippets.py from docs/guides/promises.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/promises.md: A promise is already running
extension Snippets {
    static func promises1() throws {
        var begun = 0
        func work() -> Promise<Int> {
            begun += 1
            return after(.seconds(1)).map { begun }
        }

        let both = [work(), work()]                   // both run, and side by side
        assert(begun == 2)
        let sum = when(fulfilled: both).map { $0.reduce(0, +) }
        let value = try hang(sum)                     // one second, not two
        assert(value == 4)
        assert(EventLoop.current.now == LoopInstant(nanoseconds: 1_000_000_000))
        _ = begun
        _ = both
        _ = sum
        _ = value
    }
}

// docs/guides/promises.md: What runs when, and where
extension Snippets {
    static func promises2() throws {
        var order: [String] = []
        let promise = Promise.value("ready")
        promise.done { _ in order.append("1st handler") }.cauterize()
        promise.map { _ in order.append("2nd handler") }.done { order.append("its next step") }.cauterize()
        promise.done { _ in order.append("3rd handler") }.cauterize()
        after(.zero).done { order.append("timer") }
        order.append("the line below")
        try EventLoop.current.run()
        assert(order == ["the line below", "1st handler", "2nd handler", "3rd handler", "its next step", "timer"])
        _ = order
        _ = promise
    }
}

// docs/guides/promises.md: Making one
extension Snippets {
    static func promises3() throws {
        let fulfilled = Promise.value(1)
        let rejected = Promise<Int>(error: PromiseError.badInput("no"))
        let done = Promise<Void>()
        assert(fulfilled.settledValue == 1 && rejected.error != nil && done.isFulfilled)

        let later = Promise<String> { resolver in
            EventLoop.current.schedule(after: .seconds(1)) { resolver.fulfill("late") }
        }
        let text = try hang(later)
        assert(text == "late")

        let (promise, resolver) = Promise<Int>.pending()
        resolver.fulfill(1)
        resolver.fulfill(2)                           // too late: the first counts
        assert(promise.settledValue == 1)

        let thrown = firstly { () throws -> Promise<Int> in throw PromiseError.badInput("thrown") }
        assert(thrown.error != nil)
        _ = fulfilled
        _ = rejected
        _ = done
        _ = later
        _ = text
        _ = promise
        _ = resolver
        _ = thrown
    }
}

// docs/guides/promises.md: Making one
extension Snippets {
    static func promises4() throws {
        func look(up name: String, then callback: @escaping (Int?, (any Error)?) -> Void) {
            EventLoop.current.enqueue { callback(name.count, nil) }
        }
        func lookUp(_ name: String) -> Promise<Int> {
            Promise { look(up: name, then: $0.resolve) }     // or Promise<Int> { … }: Swift 6 mode needs the type
        }
        let length = try hang(lookUp("pear"))
        assert(length == 4)
        _ = length
    }
}

// docs/guides/promises.md: Guarantees
extension Snippets {
    static func promises5() throws {
        let one = Guarantee.value(1)
        let (guarantee, resolve) = Guarantee<Int>.pending()
        let made = Guarantee<Int> { seal in seal(3) }
        resolve(2)
        let sum = when(guarantees: [one, guarantee, made]).map { $0.reduce(0, +) }
        assert(hang(sum) == 6)                        // no try

        let mayFail: Promise<Int> = sum.map { value in
            guard value < 6 else { throw PromiseError.badInput("too much") }
            return value
        }
        let kept: Guarantee<Int> = mayFail.recover { _ in .value(0) }
        assert(hang(kept) == 0)
        _ = one
        _ = guarantee
        _ = resolve
        _ = made
        _ = sum
        _ = mayFail
        _ = kept
    }
}

// docs/guides/promises.md: Chains
extension Snippets {
    static func promises6() throws {
        func price(of fruit: String) -> Promise<Int> {
            after(.milliseconds(10)).map {
                guard fruit != "durian" else { throw PromiseError.badInput("no \(fruit) here") }
                return fruit.count
            }
        }

        let plural = ["pear": "pears"]
        var seen: [String] = []
        let pears = Promise.value("pear").compactMap { plural[$0] }
        let chain = pears
            .then { price(of: $0) }
            .map { $0 * 8 }
            .validate { $0 < 100 }
            .get { seen.append("get \($0)") }
            .then { limit in price(of: "apple").map { limit + $0 } }
            .tap { result in seen.append("tap \(result)") }
            .named("total")
        let total = try hang(chain)
        assert(total == 45)
        assert(seen == ["get 40", "tap success(45)"])

        let tooMuch = price(of: "pear").validate { $0 > 100 }
        assert((try? hang(tooMuch)) == nil && tooMuch.error as? PromiseError == .validationFailed(value: "4"))
        _ = plural
        _ = seen
        _ = pears
        _ = chain
        _ = total
        _ = tooMuch
    }
}

// docs/guides/promises.md: Chains
extension Snippets {
    static func promises7() throws {
        func countDown(from number: Int) -> Promise<String> {
            number == 0 ? .value("lift-off") : after(.seconds(1)).then { countDown(from: number - 1) }
        }
        let said = try hang(countDown(from: 10_000))
        assert(said == "lift-off")
        _ = said
    }
}

// docs/guides/promises.md: Asking and waiting
extension Snippets {
    static func promises8() throws {
        let (promise, resolver) = Promise<Int>.pending()
        assert(promise.isPending && promise.result == nil)
        resolver.fulfill(3)
        assert(promise.isResolved && promise.isFulfilled && promise.settledValue == 3)
        let value = try hang(promise)
        assert(value == 3)
        _ = promise
        _ = resolver
        _ = value
    }
}
