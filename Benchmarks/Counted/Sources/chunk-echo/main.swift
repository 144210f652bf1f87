// The library's fast path: chunks that are lent, and sent without a copy.
import Glibc
import Promises
import Reactor
import ReactorIO

guard CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--listen" else {
    print("usage: chunk-echo --listen ADDRESS:PORT")
    exit(2)
}
let loop = EventLoop.current
let listener = try Listener.bind(CommandLine.arguments[2])
let served = listener.serve { connection in
    connection.forEachChunk { connection.write($0) }
}
try loop.onSignal(SIGTERM) { exit(0) }.unref()
try loop.turn(.poll)
print("listening on \(listener.localAddress)")
fflush(nil)
try hang(served)
