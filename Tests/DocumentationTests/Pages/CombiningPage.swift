// Made by .ci/snippets.py from docs/guides/combining.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/combining.md: Sequences
extension Snippets {
    static func combining1() throws {
        func price(of fruit: String) -> Promise<Int> { after(.seconds(1)).map { fruit.count } }
        let words = Promise.value(["pear", "fig", "apple"])
        let clock = EventLoop.current

        let together = try hang(words.thenMap { price(of: $0) })
        assert(together == [4, 3, 5] && clock.now == LoopInstant(nanoseconds: 1_000_000_000))

        let sum = try hang(words.thenReduce(0) { total, word in price(of: word).map { total + $0 } })
        assert(sum == 12 && clock.now == LoopInstant(nanoseconds: 4_000_000_000))

        var bought: [String] = []
        try hang(words.then { forEach($0) { word in price(of: word).done { _ in bought.append(word) } } })
        assert(bought == ["pear", "fig", "apple"])
        _ = words
        _ = clock
        _ = together
        _ = sum
        _ = bought
    }
}

// docs/guides/combining.md: Several at once
extension Snippets {
    static func combining2() throws {
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

// docs/guides/combining.md: Several at once
extension Snippets {
    static func combining3() throws {
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

// docs/guides/combining.md: Several at once
extension Snippets {
    static func combining4() throws {
        let slow = after(.seconds(10)).map { "slow" }
        let quick = after(.seconds(1)).then { Promise.value("quick") }
        let first = try hang(race(quick, slow))
        assert(first == "quick")
        assert(EventLoop.current.isAlive == false)    // the timer of ten seconds is gone

        let failing = Promise<String>(error: PromiseError.badInput("no"))
        let second = after(.seconds(1)).then { Promise.value("second") }
        let winner = try hang(race(fulfilled: [failing, second]))
        assert(winner == "second")
        _ = slow
        _ = quick
        _ = first
        _ = failing
        _ = second
        _ = winner
    }
}

// docs/guides/combining.md: One after another
extension Snippets {
    static func combining5() throws {
        var running = 0, most = 0
        func load(_ number: Int) -> Promise<Int> {
            running += 1
            most = max(most, running)
            return after(.seconds(1)).map { number * number }.ensure { running -= 1 }
        }

        let squares = try hang(when(fulfilled: 1...10, concurrently: 3) { load($0) })
        assert(squares == [1, 4, 9, 16, 25, 36, 49, 64, 81, 100] && most == 3)

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
        _ = visited
        _ = left
    }
}

// docs/guides/combining.md: Time
extension Snippets {
    static func combining6() throws {
        let clock = EventLoop.current
        hang(after(.milliseconds(1500)))
        hang(after(.seconds(1.5)))
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

// docs/guides/combining.md: Time
extension Snippets {
    static func combining7() throws {
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
