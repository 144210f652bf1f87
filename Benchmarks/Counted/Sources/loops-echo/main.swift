// An echo server on several loops, with either way of distributing connections: one listener that hands over, or one
// listener per loop at the same address.
import Glibc
import Promises
import Reactor
import ReactorIO

@Sendable func echo(_ connection: Connection) -> Promise<Void> {
    connection.forEachChunk { connection.write($0) }
}

var arguments = CommandLine.arguments.dropFirst()
var options = ["--listen": "127.0.0.1:7000", "--threads": "1", "--by": "hand-off"]
while let name = arguments.popFirst(), let value = arguments.popFirst(), options.updateValue(value, forKey: name) != nil
{}
guard arguments.isEmpty, options.count == 3, let threads = Int(options["--threads"]!), threads > 0 else {
    print("usage: loops-echo [--threads N] [--by hand-off|reuse-port] [--listen ADDRESS:PORT]")
    exit(2)
}
let sharesPort = options["--by"] == "reuse-port"
let settings: [SocketSetting] = sharesPort ? [.set(.reusePort, to: true)] : []
let listener = try Listener.bind(options["--listen"]!, options: settings)
// With a listener per loop, this loop is one of them.
let others = threads - (sharesPort ? 1 : 0)
let group = threads == 1 ? nil : try LoopGroup(loops: others, name: "echo")
let served: Promise<DrainResult>
if let group, !sharesPort {
    served = listener.serve(on: group, handler: echo)
} else {
    let address = listener.localAddress
    for remote in group.map(Array.init) ?? [] {
        remote.submit {
            do { try Listener.bind(address, options: settings).serve(handler: echo).cauterize() } catch {
                print(error)
                exit(1)
            }
        }
    }
    served = listener.serve(handler: echo)
}
try EventLoop.current.onSignal(SIGTERM) { exit(0) }.unref()
try EventLoop.current.turn(.poll)
print("listening on \(listener.localAddress)")
fflush(nil)
try hang(served)
