// Made by .ci/snippets.py from docs/guides/compiler-messages.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/compiler-messages.md: The rule behind most messages
extension Snippets {
    static func compilerMessages1() throws {
        request("/a").then { response -> Promise<Page> in
            print(response.name)
            return fetch(response.name)
        }
        .done { print($0.text) }
        .cauterize()
    }
}

// docs/guides/compiler-messages.md: The rule behind most messages
extension Snippets {
    static func compilerMessages2() throws {
        func page(_ name: String, offline: Bool) -> Promise<Page> {
            firstly { request(name) }
                .then { response in
                    if response.name.isEmpty { return .value(Page(response)) }
                    return fetch(response.name)
                }
                .recover { _ in .value(Page(Response(name: "home"))) }
        }
    }
}

// docs/guides/compiler-messages.md: Types that the compiler does not find
extension Snippets {
    static func compilerMessages3() throws {
        func query(_ completion: @escaping (Int?, (any Error)?) -> Void) { completion(1, nil) }

        let number = Promise { seal in query { seal.resolve($0, $1) } }
        let saved = forEach([1, 2]) { number in
            print(number)
            return Promise<Void>.value
        }
        _ = number
        _ = saved
    }
}
