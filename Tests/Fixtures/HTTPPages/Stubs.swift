import Promises
import Reactor
import ReactorHTTP
import ReactorIO

// The names that the page's code uses without declaring them. It is compiled but not run.

enum Snippets {}

var listener: Listener { fatalError("not run") }
var shop: Shop { Shop() }
struct Shop { func place(order: String) -> Promise<Int> { .value(order.count) } }
var spinner: Spinner { Spinner() }
struct Spinner {
    func start() {}
    func stop() {}
}
func show(_ image: [UInt8]) {}
func report(_ error: any Error) {}
