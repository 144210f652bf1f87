// Made by .ci/snippets.py from docs/coming-from/async-await.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/coming-from/async-await.md: Coming from async and await
extension Snippets {
    static func asyncAwait1() throws {
        func price(of fruit: String) -> Promise<Int> { after(.milliseconds(20)).map { fruit.count }.asPromise() }

        func total(_ fruits: [String]) -> Promise<Int> {
            when(fulfilled: fruits.map { price(of: $0) }).map { prices in prices.reduce(0, +) }.timeout(.seconds(2))
        }

        let sum = try hang(total(["pear", "fig"]))
        assert(sum == 7)
        _ = sum
    }
}
