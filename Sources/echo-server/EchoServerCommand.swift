import CLinux
import Glibc
import Promises
import Reactor

/// The program: command line in, exit code out. The codes are those of sysexits(3).
@main
enum EchoServerCommand {
    static func main() {
        switch parse() {
        case .help: print(Options.help)
        case .version: print("echo-server \(Options.version)")
        case .serve(let options): serve(options)
        }
    }

    private static func parse() -> Options.Command {
        do throws(Options.UsageError) { return try Options.parse(CommandLine.arguments.dropFirst()) } catch {
            fail("\(error); see echo-server --help", EX_USAGE)
        }
    }

    private static func serve(_ options: Options) {
        keepFreedMemory()
        let loop = EventLoop.current
        loop.measuresTurns = true
        do {
            let server = try EchoServer(options)
            let endpoint = try options.metricsAddress.map { address in
                try MetricsEndpoint(address) {
                    server.statistics.prometheusText + loop.metrics.prometheusText(prefix: "echo_loop")
                }
            }
            let served = server.serve()
            if let error = served.error { throw error }
            endpoint?.serve(warn)
            let service = Service(warn: warn)
            let statistics = { (title: String) in
                if !options.isQuiet { say(server.statistics.line(title, loop.metrics)) }
            }
            try watchSignals(loop, server, service, statistics)
            if let interval = options.statisticsInterval {
                loop.schedule(every: interval) { statistics("statistics") }.unref()
            }
            // Opens what the loop needs to wait, or throws: the line below is a promise.
            try loop.turn(.poll)
            for address in server.addresses { say("listening on \(address)") }
            if let endpoint { say("metrics on \(endpoint.address)") }
            service.isReady(server.addresses, on: loop)
            try hang(served)
            statistics("totals")
        } catch {
            fail("\(error)", exitCode(error))
        }
    }

    /// Each chunk of up to 64 KiB is an array of its own, and glibc gives memory at the top of the heap back to the
    /// kernel as soon as 128 KiB of it are free, to fault it in again for the next chunk. With this the server spends
    /// half the time on 16 KiB messages. See mallopt(3).
    private static func keepFreedMemory() {
        mallopt(M_TRIM_THRESHOLD, 16 << 20)
        mallopt(M_TOP_PAD, 1 << 20)
    }

    /// The first SIGINT or SIGTERM drains, the second ends the process as the signal itself would have.
    private static func watchSignals(
        _ loop: EventLoop, _ server: EchoServer, _ service: Service, _ statistics: @escaping (String) -> Void
    ) throws {
        var isDraining = false
        for signal in [SIGINT, SIGTERM] {
            try loop.onSignal(signal) {
                if isDraining { exit(128 + signal) }
                isDraining = true
                service.isStopping()
                server.drain()
            }.unref()
        }
        try loop.onSignal(SIGUSR1) { statistics("statistics") }.unref()
    }

    /// Standard output is flushed line by line, so that whoever waits for a line through a pipe gets it.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    private static func warn(_ message: String) {
        var line = "echo-server: \(message)\n"
        line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    private static func fail(_ message: String, _ code: CInt) -> Never {
        warn(message)
        exit(code)
    }

    private static func exitCode(_ error: any Error) -> CInt {
        switch (error as? SystemError)?.code {
        case EADDRINUSE, EADDRNOTAVAIL: EX_UNAVAILABLE
        default: EX_OSERR
        }
    }
}
