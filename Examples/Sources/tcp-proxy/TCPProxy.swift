import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorIO

/// The program: listens, prints its address, and forwards connections to its backends until SIGTERM or SIGINT.
@main
enum TCPProxy {
    static func main() { runProgram("tcp-proxy") { arguments in try serve(Options(arguments)) } }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address, backlog: 4096, options: [.set(.keepAlive, to: true)])
        let balancer = Balancer(options.backends, options.balancing, options.health)
        balancer.startChecks()
        // The first signal ends clients that have not sent anything and lets the others finish; a second one resets
        // them.
        let served = listener.serve(
            ServeOptions(
                maxConnections: options.limits.connections, stopSignals: [SIGTERM, SIGINT],
                drainTimeout: options.limits.drain)
        ) { client in Session(client, balancer, options.limits).serve() }
        listener.printAddress()
        try hang(served)
    }
}

/// Prints a line for the operator.
func log(_ line: String) {
    print(line)
    fflush(nil)
}
