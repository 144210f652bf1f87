// Made by .ci/snippets.py from docs/start/first-promises.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/start/first-promises.md: Step 1: promises and hang
extension Snippets {
    static func firstPromises2() throws {
        struct OutOfStock: Error {
            let fruit: String
        }

        /// Stands for a request that takes a tenth of a second.
        func price(of fruit: String) -> Promise<Int> {
            after(.milliseconds(100)).map {
                if fruit == "durian" { throw OutOfStock(fruit: fruit) }
                return fruit.count
            }
        }

        func main() throws {
            // 1. A chain: `map` transforms the value when it is there.
            let pear = price(of: "pear").map { price in "a pear costs \(price)" }
            let text = try hang(pear)
            print(text)
            assert(text == "a pear costs 4")

            // 2. Several at once: the requests run side by side, so this takes a tenth of a second too.
            let prices = try hang(when(fulfilled: ["pear", "apple", "plum"].map { price(of: $0) }))
            print("together: \(prices.reduce(0, +))")
            assert(prices == [4, 5, 4])

            // 3. One after the other: `then` begins the next request with the value of the one before.
            let sum = price(of: "pear").then { first in
                price(of: "apple").map { second in first + second }
            }
            print("one after the other: \(try hang(sum))")

            // 4. Errors: an error skips `map` and `then`, and `recover` replaces it.
            let instead = price(of: "durian").recover { error -> Promise<Int> in
                print("no durian: \(error)")
                return price(of: "pear")
            }
            let replaced = try hang(instead)
            assert(replaced == 4)

            // 5. A time limit: `timeout` rejects the promise and cancels the request.
            let late = price(of: "apple").timeout(.milliseconds(10))
            do { print(try hang(late)) } catch { print("too late: \(error)") }
            assert(late.isRejected)
        }

        do { try main() } catch { print("failed: \(error)") }
    }
}
