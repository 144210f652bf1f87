// Made by .ci/snippets.py from docs/explanation/architecture.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/explanation/architecture.md: The life of a promise
extension Snippets {
    static func architecture1() throws {
        func serve() -> Promise<Void> { read().then { write($0) }.then { serve() } }
    }
}
