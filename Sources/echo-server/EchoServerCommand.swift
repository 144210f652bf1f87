import CLinux
import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// Parses the command line and sets the exit code, from sysexits(3).
@main
enum EchoServerCommand {
    static func main() {
        switch parse() {
        case .help: Console.announce(Options.help)
        case .version: Console.announce("echo-server \(Options.version)")
        case .serve(let options): serve(options)
        }
    }

    private static func parse() -> Options.Command {
        // Swift reads the arguments from /proc; without it even the program's name is missing.
        if CommandLine.arguments.isEmpty {
            Console.fail("the command line cannot be read: is /proc mounted?", EX_OSERR)
        }
        do throws(Options.UsageError) { return try Options.parse(CommandLine.arguments.dropFirst()) } catch {
            Console.fail("\(error); see echo-server --help", EX_USAGE)
        }
    }

    private static func serve(_ options: Options) {
        keepFreedMemory()
        // The server must survive the exit of its output's reader or its terminal. No process inherits this, since
        // there are no children.
        for number in [SIGPIPE, SIGHUP] { signal(number, SIG_IGN) }
        conf.logHandler = { Console.warn("swift-reactor: \($0)") }
        do { try serve(options, on: EventLoop.current) } catch { Console.fail("\(error)", exitCode(error)) }
    }

    private static func serve(_ options: Options, on loop: EventLoop) throws {
        let warn = { (message: String) in Console.warn("echo-server: \(message)") }
        let server = try EchoServer(options, DescriptorLimit.raise())
        if let shortage = server.shortage { warn(shortage) }
        let endpoint = try options.metricsAddress.map { address in
            try MetricsEndpoint(address) { server.report().map { $0.prometheusText(server) } }
        }
        defer { endpoint?.close() }
        let served = server.serve()
        endpoint?.serve(warn)

        let statistics = { (title: String) -> Promise<Void> in
            options.isQuiet ? .value : server.report().done { Console.say($0.line(title)) }
        }
        let service = ServiceNotifier(on: loop, warn: warn)
        let drained = try server.drainAtSignals {
            service.notifyStopping(within: options.drainTimeout)
        } orEndNow: { signal in
            endpoint?.close()
            // `exit` would clean up while other threads run.
            _exit(128 + signal)
        }
        try loop.onSignal(SIGUSR1) { statistics("statistics").cauterize() }.unref()
        // Opens the loop's descriptors or throws, before the lines below announce that the server is ready.
        try loop.turn(.poll)
        // The listeners may have failed by now.
        if let error = served.error { throw error }
        for address in server.addresses { Console.announce("listening on \(address)") }
        if let endpoint { Console.announce("metrics on \(endpoint.address)") }
        service.notifyReady(server.addresses, server.alive)
        if let interval = options.statisticsInterval {
            loop.schedule(every: interval) { statistics("statistics").cauterize() }.unref()
        }
        // Waits for both: a listener's error would count as unhandled while only the drain is awaited.
        for end in try hang(when(resolved: [drained, served]).asPromise()) { try end.get() }
        try hang(statistics("totals"))
        server.stop()
    }

    /// Keeps freed memory in the process. Each chunk of up to 64 KiB is a separate array. By default, glibc returns the
    /// heap's top to the kernel once 128 KiB are free, and faults it in again for the next chunk. With these settings
    /// the server needs half the time for 16 KiB messages. See mallopt(3).
    private static func keepFreedMemory() {
        clinux_keep_freed_memory(16 << 20, 1 << 20)
    }

    private static func exitCode(_ error: any Error) -> CInt {
        switch (error as? SystemError)?.code {
        case EADDRINUSE, EADDRNOTAVAIL: EX_UNAVAILABLE
        default: EX_OSERR
        }
    }
}
