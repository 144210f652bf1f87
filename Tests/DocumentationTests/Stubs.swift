import Promises

// The names that the documentation's snippets use and do not declare. A snippet says what it is about, and takes for
// granted that there is a `request`, a `Page`, a `database`.

struct Response: Sendable {
    var name: String
}

struct Page: Sendable {
    var text: String

    init(_ response: Response) { text = response.name }
}

struct Session: Sendable {
    init(_ response: Response) {}
}

struct Answer: Sendable {}

struct NotYet: Error {}

/// A request that is answered a hundredth of a second later.
func request(_ path: String) -> Promise<Response> { after(.milliseconds(10)).map { Response(name: path) } }

let url = "https://example.org"
let mirror = "https://mirror.example.org"

func fetch(_ url: String) -> Promise<Page> { request(url).map(Page.init) }

// architecture.md
func read() -> Promise<[UInt8]> { .value([]) }
func write(_ bytes: [UInt8]) -> Promise<Void> { .value }

/// Answers through callbacks.
final class Database: Sendable {
    final class Query {
        func stop() {}
    }

    func start(_ answer: @escaping (Result<Answer, any Error>) -> Void) -> Query { Query() }
}

let database = Database()

func ask() async throws -> Answer { Answer() }

func double(_ number: Int) async throws -> Int { number * 2 }

/// The half of swift-log that the documentation calls.
struct Logger: Sendable {
    func error(_ message: String, metadata: [String: String] = [:]) {}
    func warning(_ message: String, metadata: [String: String] = [:]) {}
}

let logger = Logger()
