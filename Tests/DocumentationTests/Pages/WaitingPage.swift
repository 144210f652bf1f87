// Made by .ci/snippets.py from docs/guides/waiting.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/waiting.md: Asking and waiting
extension Snippets {
    static func waiting1() throws {
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

// docs/guides/waiting.md: Other threads
extension Snippets {
    static func waiting2() throws {
        let pool = try ThreadPool(name: "sums", threads: 2)
        let sum = Guarantee(on: pool) { (1...1000).reduce(0, +) }         // over there
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

// docs/guides/waiting.md: Other threads
extension Snippets {
    static func waiting3() throws {
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

// docs/guides/waiting.md: async and await
extension Snippets {
    static func waiting4() throws {
        func greeting(of promise: Promise<String>, _ guarantee: Guarantee<Int>) async throws -> String {
            try await "\(promise.value) \(guarantee.value)"
        }
    }
}

// docs/guides/waiting.md: async and await
extension Snippets {
    static func waiting5() throws {
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

// docs/guides/waiting.md: async and await
extension Snippets {
    static func waiting6() throws {
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

// docs/guides/waiting.md: A thenable of your own
extension Snippets {
    static func waiting7() throws {
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

// docs/guides/waiting.md: Testing
extension Snippets {
    static func waiting8() throws {
        let waited = try withVirtualTime { clock in
            try hang(Promise.value("an hour later").delay(.seconds(3600)), timeout: .seconds(7200))
            return clock.now
        }
        assert(waited == LoopInstant(nanoseconds: 3_600_000_000_000))
        _ = waited
    }
}
