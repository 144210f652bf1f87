import Glibc
import Promises
import Reactor

// The names that the documentation's snippets use without declaring them. A snippet shows its subject, and assumes a
// `request`, a `Page`, a `database`.

struct Reply: Sendable {
    var name: String
}

struct Page: Sendable {
    var text: String

    init(_ reply: Reply) { text = reply.name }
}

struct Session: Sendable {
    init(_ reply: Reply) {}
}

struct Answer: Sendable {}

struct NotYet: Error {}

/// A request answered after a hundredth of a second.
func request(_ path: String) -> Promise<Reply> { after(.milliseconds(10)).map { Reply(name: path) } }

let url = "https://example.org"
let mirror = "https://mirror.example.org"

func fetch(_ url: String) -> Promise<Page> { request(url).map(Page.init) }

/// Answers through callbacks.
final class Database: Sendable {
    final class Query {
        func stop() {}
    }

    func start(_ answer: @escaping (Result<Answer, any Error>) -> Void) -> Query { Query() }
}

let database = Database()

func ask() async throws -> Answer { Answer() }

/// The part of swift-log that the documentation uses.
struct Logger: Sendable {
    func error(_ message: String, metadata: [String: String] = [:]) {}
    func warning(_ message: String, metadata: [String: String] = [:]) {}
}

let logger = Logger()

// reactor.md

/// The argument of pthread_create is a pointer.
private final class ThreadBody {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Runs `body` on a new thread, which ends with it.
func startThread(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let code = pthread_create(
        &thread, nil,
        {
            Unmanaged<ThreadBody>.fromOpaque($0!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(ThreadBody(body)).toOpaque())
    precondition(code == 0, "pthread_create failed with \(code)")
    pthread_detach(thread)
}

struct NoPipe: Error {}

/// Both ends of a new non-blocking pipe.
func openPipe() throws -> (reader: CInt, writer: CInt) {
    var ends: [CInt] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { throw NoPipe() }
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    return (ends[0], ends[1])
}

/// The bytes available now.
func bytes(of descriptor: CInt) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    return Array(buffer.prefix(max(count, 0)))
}

func put(_ text: String, into descriptor: CInt) {
    _ = Array(text.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
}

/// A folder for this run of the tests.
let temporaryFolder: String = {
    var template = Array("/tmp/swift-reactor-pages-XXXXXX".utf8CString)
    return mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
}()

// patterns.md

/// A C library that answers on its own thread: ten times the number of the sensor.
func read_sensor(
    _ sensor: CInt, _ context: UnsafeMutableRawPointer?,
    _ callback: @escaping @convention(c) (UnsafeMutableRawPointer?, CInt) -> Void
) {
    let address = UInt(bitPattern: context)
    startThread { callback(UnsafeMutableRawPointer(bitPattern: address), sensor * 10) }
}

// embedding.md, which declares it in its first block

func turnAll(_ loop: EventLoop) throws(SystemError) {
    repeat { try loop.turn(.poll) } while loop.isReady
}
