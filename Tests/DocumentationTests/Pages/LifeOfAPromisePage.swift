// Made by .ci/snippets.py from docs/explanation/life-of-a-promise.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/explanation/life-of-a-promise.md: The life of a promise
extension Snippets {
    static func lifeOfAPromise1() throws {
        func serve() -> Promise<Void> { read().then { write($0) }.then { serve() } }
    }
}
