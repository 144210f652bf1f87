import Logging
import NIOCore
import Promises
import Reactor
import ReactorIO
import ReactorTLS

// The names that the page's code uses without declaring them. It is compiled but not run.

enum Snippets {}

var configuration: TLSConfiguration {
    get { TLSConfiguration() }
    set { _ = newValue }
}
var server: TLSServer { fatalError("not run") }
var tls: TLSServer { server }
var listener: Listener { fatalError("not run") }
var group: LoopGroup { fatalError("not run") }
var pool: ThreadPool { .shared }
var logger: Logger { Logger(label: "page") }

func log(_ error: any Error) {}
func converse(_ connection: Connection, _ logger: Logger = logger) -> Promise<Void> { .value }

let url = "https://example.org"
struct Tree: Sendable {}
func fetch(_ url: String) -> Promise<String> { .value(url) }
func parse(_ page: String) -> Promise<Tree> { .value(Tree()) }
func render(_ tree: Tree) -> String { "" }

var file: Promise<[UInt8]> { .value([]) }
func digest(_ bytes: [UInt8]) -> Int { bytes.count }

var numbers: Promise<[Int]> { .value([]) }
func add(_ numbers: [Int]) -> Int { numbers.reduce(0, +) }
var nioLoop: any NIOCore.EventLoop { fatalError("not run") }
var theirFuture: EventLoopFuture<Int> { fatalError("not run") }
