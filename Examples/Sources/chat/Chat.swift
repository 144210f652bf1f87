import ExampleSupport
import Glibc
import Promises
import Reactor

/// The program: listens, says where, and serves on two loops until SIGTERM or SIGINT.
@main
enum Chat {
    static func main() {
        runProgram("chat") { try serve(Options(CommandLine.arguments.dropFirst())) }
    }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address)
        let group = try LoopGroup(loops: 2, name: "chat")
        let members = LoopLocal { LocalMembers() }
        let hall = Hall(on: group, members)
        let limits = options.limits
        // The first signal closes the connections that wait for a line; a second signal, or ten seconds, cancels the rest.
        let served = listener.serve(
            on: group, ServeOptions(maxConnections: 10_000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(10))
        ) { connection in
            let members = members.value(for: connection)
            try await Session(connection, members, hall, limits).run()
        }
        listener.printAddress()
        try hang(served)
        group.stop()
        group.join()
    }
}
