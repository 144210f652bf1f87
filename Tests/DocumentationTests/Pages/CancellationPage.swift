// Made by .ci/snippets.py from docs/guides/cancellation.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/cancellation.md: Cancellation
extension Snippets {
    static func cancellation1() throws {
        let page = after(.seconds(1))
            .then { request("/page") }
            .ensure { print("done with it") }
            .map(Page.init)

        page.cancel()
        _ = page
    }
}

// docs/guides/cancellation.md: Work of your own
extension Snippets {
    static func cancellation2() throws {
        let answer = Promise<Answer> { resolver in
            let query = database.start { resolver.resolve($0) }
            resolver.onCancel { [weak query] in query?.stop() }
        }
        _ = answer
    }
}

// docs/guides/cancellation.md: Work of your own
extension Snippets {
    static func cancellation3() throws {
        final class Permits {
            private var free = 2
            private var waiting: [Resolver<Void>] = []

            func take() -> Promise<Void> {
                if free > 0 {
                    free -= 1
                    return .value
                }
                return Promise { waiting.append($0) }
            }

            func giveBack() {
                while !waiting.isEmpty {
                    if waiting.removeFirst().fulfill() { return }     // false: cancelled, so the next one gets it
                }
                free += 1
            }
        }
    }
}

// docs/guides/cancellation.md: Who listens
extension Snippets {
    static func cancellation4() throws {
        let shared = request("/config")
        let one = shared.map { $0.name }
        one.cancel()                                  // no other listener: the request is cancelled
        shared.pipe { _ in }                          // now it continues, even if other handlers withdraw
        _ = shared
        _ = one
    }
}

// docs/guides/cancellation.md: Several
extension Snippets {
    static func cancellation5() throws {
        let page = fetch(url).timeout(.seconds(2))    // late: the request is given up
        let quickest = race(fetch(url), fetch(mirror)) // the slower request is given up
        _ = page
        _ = quickest
    }
}

// docs/guides/cancellation.md: Several
extension Snippets {
    static func cancellation6() throws {
        let slow = fetch(url)
        slow.pipe { _ in }                            // continues, whichever promise wins
        let either = race(slow.asVoid(), after(.seconds(1)).asPromise())   // at most a second later
        _ = slow
        _ = either
    }
}

// docs/guides/cancellation.md: hang
extension Snippets {
    static func cancellation7() throws {
        try hang(fetch(url).timeout(.seconds(2)))
    }
}
