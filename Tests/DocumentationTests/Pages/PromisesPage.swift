// Made by .ci/snippets.py from docs/guides/promises.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/promises.md: Promises
extension Snippets {
    static func promises1() throws {
    }
}

// docs/guides/promises.md: A promise is already running
extension Snippets {
    static func promises2() throws {
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
    static func promises3() throws {
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

// docs/guides/promises.md: What runs when, and where
extension Snippets {
    static func promises4() throws {
        final class Cart { var items: [String] = [] }          // not Sendable

        let cart = Cart()
        var steps = 0
        let filled = after(.milliseconds(1)).get {
            cart.items.append("pear")
            steps += 1
        }
        hang(filled)
        assert(cart.items == ["pear"] && steps == 1)
        _ = cart
        _ = steps
        _ = filled
    }
}

// docs/guides/promises.md: Making one
extension Snippets {
    static func promises5() throws {
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
    static func promises6() throws {
        func look(up name: String, then callback: @escaping (Int?, (any Error)?) -> Void) {
            EventLoop.current.enqueue { callback(name.count, nil) }
        }
        func lookUp(_ name: String) -> Promise<Int> {
            Promise { look(up: name, then: $0.resolve) }
        }
        let length = try hang(lookUp("pear"))
        assert(length == 4)
        _ = length
    }
}

// docs/guides/promises.md: Guarantees
extension Snippets {
    static func promises7() throws {
        let one = Guarantee.value(1)
        let (guarantee, resolve) = Guarantee<Int>.pending()
        let made = Guarantee<Int> { seal in seal(3) }
        resolve(2)
        let sum = when(guarantees: one, guarantee, made).map { $0 + $1 + $2 }
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
    static func promises8() throws {
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
            .getThen { _ in after(.seconds(1)).done { seen.append("a second later") } }
            .then { limit in price(of: "apple").map { limit + $0 } }
            .tap { result in seen.append("tap \(result)") }
            .named("total")
        let total = try hang(chain)
        assert(total == 45)
        assert(seen == ["get 40", "a second later", "tap success(45)"])

        let over = chain.done { seen.append("done \($0)") }
        let nothing: Promise<Void> = chain.asVoid()
        try hang(when(fulfilled: over, nothing))
        assert(seen.last == "done 45")

        let tooMuch = price(of: "pear").validate { $0 > 100 }
        assert((try? hang(tooMuch)) == nil && tooMuch.error as? PromiseError == .validationFailed(value: "4"))

        let unknown = Promise.value("fig").compactMap { plural[$0] }
        assert((try? hang(unknown)) == nil && unknown.isRejected)
        _ = plural
        _ = seen
        _ = pears
        _ = chain
        _ = total
        _ = over
        _ = nothing
        _ = tooMuch
        _ = unknown
    }
}

// docs/guides/promises.md: Chains
extension Snippets {
    static func promises9() throws {
        func countDown(from number: Int) -> Promise<String> {
            number == 0 ? .value("lift-off") : after(.seconds(1)).then { countDown(from: number - 1) }
        }
        let said = try hang(countDown(from: 10_000))
        assert(said == "lift-off")
        _ = said
    }
}

// docs/guides/promises.md: Errors
extension Snippets {
    static func promises10() throws {
        enum Weather: Error, Equatable { case rain, hail(Int) }
        func forecast(_ error: Weather) -> Promise<String> { Promise(error: error) }
        var log: [String] = []

        forecast(.rain)
            .done { log.append($0) }                  // passed by
            .catch { log.append("caught \($0)") }
            .finally { log.append("finally") }

        forecast(.hail(3))
            .catch(only: Weather.rain) { log.append("umbrella") }
            .catch(only: Weather.self) { log.append("stay at \($0)") }
            .catch { log.append("not weather: \($0)") }
            .finally { log.append("the end") }

        forecast(.rain)
            .tapError { _ in log.append("tapError") }
            .mapError { _ in Weather.hail(1) }
            .catch { log.append("now \($0)") }
        try EventLoop.current.run()
        assert(log == ["tapError", "caught rain", "stay at hail(3)", "finally", "now hail(1)", "the end"])
        _ = log
    }
}

// docs/guides/promises.md: Errors
extension Snippets {
    static func promises11() throws {
        enum Weather: Error, Equatable { case rain, hail(Int) }
        func forecast(_ error: Weather) -> Promise<String> { Promise(error: error) }

        let promised = forecast(.rain).recover { _ in after(.seconds(1)).map { "dry later" } }
        let certain: Guarantee<String> = forecast(.rain).recover { _ in .value("dry indoors") }
        let ofOneKind = forecast(.hail(2)).recover(only: Weather.self) { Promise.value("\($0)") }
        let ofOneValue = forecast(.rain).recover(only: Weather.rain) { Promise.value("umbrella") }
        let all = try hang(when(fulfilled: promised, certain, ofOneKind, ofOneValue))
        assert(all == ("dry later", "dry indoors", "hail(2)", "umbrella"))

        let handled: Guarantee<Void> = forecast(.rain).asVoid().recover { _ in }
        hang(handled)
        _ = promised
        _ = certain
        _ = ofOneKind
        _ = ofOneValue
        _ = all
        _ = handled
    }
}

// docs/guides/promises.md: Errors
extension Snippets {
    static func promises12() throws {
        var seen: [String] = []
        let cancelled = Promise<Int>(error: PromiseError.cancelled)
        cancelled.catch { _ in seen.append("not called") }.finally { seen.append("finally") }
        cancelled.catch(policy: .allErrors) { error in seen.append("cancelled: \(error.isCancelled)") }
        try EventLoop.current.run()
        assert(seen == ["cancelled: true", "finally"])
        _ = seen
        _ = cancelled
    }
}

// docs/guides/promises.md: Cleaning up
extension Snippets {
    static func promises13() throws {
        var log: [String] = []
        let (work, resolver) = Promise<Int>.pending()
        let cleaned = work
            .ensure { log.append("closed") }
            .ensureThen { after(.seconds(1)).done { log.append("flushed") } }
        resolver.reject(PromiseError.badInput("broken"))
        cleaned
            .catch { log.append("\($0)") }
            .finally { log.append("finally") }
        try EventLoop.current.run()
        assert(log == ["closed", "flushed", "broken", "finally"])
        _ = log
        _ = work
        _ = resolver
        _ = cleaned
    }
}

// docs/guides/promises.md: Sequences
extension Snippets {
    static func promises14() throws {
        let words = Promise.value(["pear", "fig", "apple"])
        let counts = try hang(words.mapValues { $0.count })
        let letters = try hang(words.flatMapValues { $0.prefix(1) })
        assert(counts == [4, 3, 5] && letters == ["p", "f", "a"])

        let long = try hang(words.filterValues { $0.count > 3 })
        let short = try hang(words.compactMapValues { $0.count > 3 ? nil : $0.uppercased() })
        assert(long == ["pear", "apple"] && short == ["FIG"])

        let sorted = try hang(words.sortedValues())
        let backwards = try hang(words.sortedValues { $0 > $1 })
        assert(sorted == ["apple", "fig", "pear"] && backwards == ["pear", "fig", "apple"])

        let (first, last) = try hang(when(fulfilled: words.firstValue, words.lastValue))
        let aWord = try hang(words.firstValue { $0.hasPrefix("a") })
        assert(first == "pear" && last == "apple" && aWord == "apple")
        let none = words.lastValue { $0.isEmpty }
        assert((try? hang(none)) == nil && none.error as? PromiseError == .emptySequence)
        _ = words
        _ = counts
        _ = letters
        _ = long
        _ = short
        _ = sorted
        _ = backwards
        _ = first
        _ = last
        _ = aWord
        _ = none
    }
}

// docs/guides/promises.md: Sequences
extension Snippets {
    static func promises15() throws {
        func price(of fruit: String) -> Promise<Int> { after(.seconds(1)).map { fruit.count } }
        let words = Promise.value(["pear", "fig", "apple"])
        let clock = EventLoop.current

        let together = try hang(words.thenMap { price(of: $0) })
        assert(together == [4, 3, 5] && clock.now == LoopInstant(nanoseconds: 1_000_000_000))

        let byTwos = try hang(words.thenMap(concurrently: 2) { price(of: $0) })
        assert(byTwos == [4, 3, 5] && clock.now == LoopInstant(nanoseconds: 3_000_000_000))

        let sum = try hang(words.thenReduce(0) { total, word in price(of: word).map { total + $0 } })
        assert(sum == 12 && clock.now == LoopInstant(nanoseconds: 6_000_000_000))

        let doubled = try hang(words.thenFlatMap { word in price(of: word).map { [$0, $0] } })
        assert(doubled == [4, 4, 3, 3, 5, 5])

        var bought: [String] = []
        try hang(words.thenForEach { word in price(of: word).done { _ in bought.append(word) } })
        assert(bought == ["pear", "fig", "apple"])
        _ = words
        _ = clock
        _ = together
        _ = byTwos
        _ = sum
        _ = doubled
        _ = bought
    }
}

// docs/guides/promises.md: Several at once
extension Snippets {
    static func promises16() throws {
        let name = after(.seconds(1)).map { "Ann" }
        let age = after(.seconds(2)).then { Promise.value(41) }
        let person = try hang(when(fulfilled: name, age).map { name, age in "\(name), \(age)" })
        assert(person == "Ann, 41")

        let numbers = try hang(when(fulfilled: (1...3).map { Promise.value($0) }))
        assert(numbers == [1, 2, 3])
        let saved: Promise<Void> = when(fulfilled: [Promise<Void>(), Promise<Void>()])
        try hang(saved)
        _ = name
        _ = age
        _ = person
        _ = numbers
        _ = saved
    }
}

// docs/guides/promises.md: Several at once
extension Snippets {
    static func promises17() throws {
        struct Offline: Error {}
        let up = Promise.value("up")
        let down = Promise<String>(error: Offline())

        let results = hang(when(resolved: [up, down]))
        assert(results.map { (try? $0.get()) ?? "down" } == ["up", "down"])
        let (one, two) = hang(when(resolved: up, after(.seconds(1)).map { 2 }))
        assert((try? one.get()) == "up" && (try? two.get()) == 2)

        let most = try hang(when(notAllRejected: [up, down]))
        assert(most.count == 2)
        let none = when(notAllRejected: [down, down])
        do { try hang(none) } catch PromiseError.noWinner(let errors) { assert(errors.count == 2) }

        let both = hang(when(guarantees: Guarantee.value(1), Guarantee.value("two")))
        assert(both == (1, "two"))
        _ = up
        _ = down
        _ = results
        _ = one
        _ = two
        _ = most
        _ = none
        _ = both
    }
}

// docs/guides/promises.md: Several at once
extension Snippets {
    static func promises18() throws {
        let slow = after(.seconds(10)).map { "slow" }
        let quick = after(.seconds(1)).then { Promise.value("quick") }
        let first = try hang(race(quick, slow))
        assert(first == "quick")
        assert(EventLoop.current.isAlive == false)    // the timer of ten seconds is gone

        let failing = Promise<String>(error: PromiseError.badInput("no"))
        let second = after(.seconds(1)).then { Promise.value("second") }
        let winner = try hang(race(fulfilled: failing, second))
        assert(winner == "second")
        _ = slow
        _ = quick
        _ = first
        _ = failing
        _ = second
        _ = winner
    }
}

// docs/guides/promises.md: One after another
extension Snippets {
    static func promises19() throws {
        var running = 0, most = 0
        func load(_ number: Int) -> Promise<Int> {
            running += 1
            most = max(most, running)
            return after(.seconds(1)).map { number * number }.ensure { running -= 1 }
        }

        let squares = try hang(when(fulfilled: 1...10, concurrently: 3) { load($0) })
        assert(squares == [1, 4, 9, 16, 25, 36, 49, 64, 81, 100] && most == 3)

        let results = try hang(when(resolved: [1, 2], concurrently: 1) { load($0) })
        assert(results.count == 2)

        let pages = (1...5).lazy.map { load($0) }.makeIterator()
        let pulled = try hang(when(fulfilled: pages, concurrently: 2))
        assert(pulled == [1, 4, 9, 16, 25])

        var visited: [Int] = []
        try hang(forEach(1...3) { number in load(number).done { visited.append($0) } })
        assert(visited == [1, 4, 9])

        var left = 3
        hang(repeatWhile {
            left -= 1
            return after(.seconds(1)).map { left > 0 }
        })
        assert(left == 0)
        _ = running
        _ = squares
        _ = results
        _ = pages
        _ = pulled
        _ = visited
        _ = left
    }
}

// docs/guides/promises.md: Time
extension Snippets {
    static func promises20() throws {
        let clock = EventLoop.current
        hang(after(.milliseconds(1500)))
        hang(after(seconds: 1.5))
        assert(clock.now == LoopInstant(nanoseconds: 3_000_000_000))

        let late = try hang(Promise.value("late").delay(.seconds(2)))
        assert(late == "late" && clock.now == LoopInstant(nanoseconds: 5_000_000_000))

        let slow = after(.seconds(3600)).map { "slow" }.timeout(.seconds(1))
        assert((try? hang(slow)) == nil && slow.error as? PromiseError == .timedOut)
        assert(clock.isAlive == false)                // the hour is no longer waited for

        let limit = clock.now.advanced(by: .seconds(5))           // for several steps
        let steps = after(.seconds(3)).timeout(deadline: limit)
            .then { after(.seconds(3)).timeout(deadline: limit) }
        assert((try? hang(steps)) == nil && clock.now == limit)
        _ = clock
        _ = late
        _ = slow
        _ = limit
        _ = steps
    }
}

// docs/guides/promises.md: Time
extension Snippets {
    static func promises21() throws {
        struct Busy: Error {}
        var attempts: [Int] = []
        let answer = retry(maxAttempts: 5, delay: .constant(.seconds(10))) { attempt -> Promise<String> in
            attempts.append(attempt)
            return attempt < 3 ? Promise(error: Busy()) : .value("at last")
        }
        let text = try hang(answer)
        assert(text == "at last" && attempts == [1, 2, 3])
        assert(EventLoop.current.now == LoopInstant(nanoseconds: 20_000_000_000))

        let hopeless = retry(maxAttempts: 9, while: { $0 is Busy }) { _ in
            Promise<Int>(error: PromiseError.badInput("for good"))
        }
        assert((try? hang(hopeless)) == nil && hopeless.error as? PromiseError == .badInput("for good"))
        _ = attempts
        _ = answer
        _ = text
        _ = hopeless
    }
}

// docs/guides/promises.md: Cancellation
extension Snippets {
    static func promises22() throws {
        var log: [String] = []
        let work = Promise<Int> { resolver in
            let timer = EventLoop.current.schedule(after: .seconds(3600)) { resolver.fulfill(1) }
            resolver.onCancel {
                timer.cancel()
                log.append("stopped")
            }
        }
        let chain = work.map { $0 + 1 }.ensure { log.append("ensure") }
        chain.cancel()
        try EventLoop.current.run()                   // does not wait for the hour
        assert(chain.isRejected && chain.isCancelled)
        assert(log.sorted() == ["ensure", "stopped"])
        _ = log
        _ = work
        _ = chain
    }
}

// docs/guides/promises.md: Asking and waiting
extension Snippets {
    static func promises23() throws {
        let (promise, resolver) = Promise<Int>.pending()
        assert(promise.isPending && promise.result == nil)
        resolver.fulfill(3)
        assert(promise.isResolved && promise.isFulfilled && promise.settledValue == 3)
        let value = try promise.wait()
        assert(value == 3)
        _ = promise
        _ = resolver
        _ = value
    }
}

// docs/guides/promises.md: Other threads
extension Snippets {
    static func promises24() throws {
        let pool = try ThreadPool(name: "sums", threads: 2)
        let sum = pool.async(.promise) { (1...1000).reduce(0, +) }        // over there
        var here = 0
        let stored = sum.done { here = $0 }                               // over here
        hang(stored)
        assert(here == 500_500)
        _ = pool
        _ = sum
        _ = here
        _ = stored
    }
}

// docs/guides/promises.md: Other threads
extension Snippets {
    static func promises25() throws {
        let text = Promise.value("text")
        let hash = text.map(on: ThreadPool.shared) { $0.unicodeScalars.reduce(5381) { $0 &* 33 &+ $1.value } }
        var seen: UInt32 = 0
        try hang(hash.done { seen = $0 })                                 // this thread again
        assert(seen != 0)
        _ = text
        _ = hash
        _ = seen
    }
}

// docs/guides/promises.md: Lazy promises
extension Snippets {
    static func promises26() throws {
        var begun = false
        let lazy = LazyPromise<Int> { resolver in
            begun = true
            resolver.fulfill(1)
        }
        assert(!begun)
        let value = try hang(lazy.map { $0 + 1 })
        assert(begun && lazy.isStarted && value == 2)
        _ = begun
        _ = lazy
        _ = value
    }
}

// docs/guides/promises.md: async and await
extension Snippets {
    static func promises27() throws {
        func greeting(of promise: Promise<String>, _ guarantee: Guarantee<Int>) async throws -> String {
            try await "\(promise.value) \(guarantee.value)"
        }
    }
}

// docs/guides/promises.md: async and await
extension Snippets {
    static func promises28() throws {
        final class Draft {
            var lines: [String] = []
        }

        actor Editor {
            private let (draft, opening) = Promise<Draft>.pending()

            func open() { opening.fulfill(Draft()) }

            func append(_ line: String) async throws -> Int {
                let draft = try await draft.value
                draft.lines.append(line)
                return draft.lines.count
            }
        }
    }
}

// docs/guides/promises.md: async and await
extension Snippets {
    static func promises29() throws {
        let promise = Promise { try await double(21) }
        let value = try hang(promise)
        assert(value == 42)

        let guarantee = Guarantee { await Task.yield() }
        hang(guarantee)
        _ = promise
        _ = value
        _ = guarantee
    }
}

// docs/guides/promises.md: A thenable of your own
extension Snippets {
    static func promises30() throws {
        final class Button: Thenable {
            private var presses = 0
            private var handlers: [(Result<Int, any Error>) -> Void] = []

            func press() {
                presses += 1
                let told = handlers
                handlers = []
                for handler in told { handler(.success(presses)) }
            }

            var result: Result<Int, any Error>? { presses == 0 ? nil : .success(presses) }

            func pipe(to handler: @escaping (Result<Int, any Error>) -> Void) {
                if let result { handler(result) } else { handlers.append(handler) }
            }
        }

        let button = Button()
        let pressed = when(fulfilled: button, after(.seconds(1))).map { presses, _ in presses }
        button.press()
        let presses = try hang(pressed)
        assert(presses == 1)
        _ = button
        _ = pressed
        _ = presses
    }
}

// docs/guides/promises.md: Testing
extension Snippets {
    static func promises31() throws {
        let waited = try withVirtualTime { clock in
            try hang(Promise.value("an hour later").delay(.seconds(3600)), timeout: .seconds(7200))
            return clock.now
        }
        assert(waited == LoopInstant(nanoseconds: 3_600_000_000_000))
        _ = waited
    }
}

// docs/guides/promises.md: Settings and the log
extension Snippets {
    static func promises32() throws {
        conf.logHandler = { event in
            logger.warning("\(event)")
        }
    }
}
