import Promises
import Reactor

// What the snippets use.

struct User {
    var id = 1
    var name = ""
}

struct Page {
    var title = ""
}

enum Reply { case text(String), end }

struct Failure: Error {}

func number() -> Promise<Int> { .value(1) }
func names() -> Promise<[String]> { .value(["Ada"]) }
func user(_ id: Int = 1) -> Promise<User> { .value(User(id: id)) }
func page(_ name: String = "") -> Promise<Page> { .value(Page(title: name)) }
func cached() -> Guarantee<Page> { .value(Page()) }
func save(_ user: User) -> Promise<Void> { .value }
func parse(_ text: String) throws -> Int { text.count }
func query(_ completion: @escaping (Int?, (any Error)?) -> Void) { completion(1, nil) }
func decode<Value: Decodable>(_ number: Int) throws -> Value { throw Failure() }
