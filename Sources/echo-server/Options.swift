import Reactor

/// The command line's options.
struct Options: Equatable {
    /// The addresses to listen on. If empty, the server uses the service manager's sockets, or else `defaultAddress`.
    var addresses: [SocketAddress] = []
    var metricsAddress: SocketAddress?
    var maxConnections = 10_000
    /// The number of serving threads; 0 means the number of cores.
    var threads = 1
    var idleTimeout: Duration?
    var drainTimeout: Duration = .seconds(5)
    var statisticsInterval: Duration?
    var isQuiet = false

    enum Command: Equatable {
        case serve(Options)
        case help
        case version
    }

    /// The error for an invalid command line, in one line for the user.
    struct UsageError: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    /// The number of the loops' descriptors. Each loop has an epoll, an eventfd and a timerfd; this thread's loop also
    /// has two for signals and the main actor.
    var loopDescriptors: Int { 5 + (loops == 1 ? 0 : 3 * loops) }

    var loops: Int { threads == 0 ? LoopGroup.defaultLoops : threads }

    static let mostThreads = 1024
    static let version = "0.1.0"
    static let defaultAddress = SocketAddress.loopback(port: 7000)

    static let help = """
        usage: echo-server [--listen ADDRESS]... [options]

        Sends every byte back to the client that sent it.

          --listen ADDRESS        listen there; may be repeated (127.0.0.1:7000)
          --max-connections N     serve at most N at a time, others wait (10000)
          --threads N             serve on N threads, 1024 at most; 0: one for each core (1)
          --idle-timeout TIME     end a connection after so long without traffic; 0: never (0)
          --drain-timeout TIME    how long connections may continue after SIGINT or SIGTERM (5s)
          --stats TIME            print statistics at this interval
          --metrics ADDRESS       answer GET /metrics there, for Prometheus
          --quiet                 print nothing but errors and the addresses
          --help, --version

        ADDRESS is HOST:PORT, where port 0 picks a free one, unix:/PATH, or unix:@NAME for an abstract name.
        TIME is 250ms, 1.5s, 2m, or a plain number of seconds; at most a year.
        Sockets that systemd passes are served as well; then there is no default address.
        SIGUSR1 prints statistics; SIGINT and SIGTERM drain and exit, a second one exits at once.
        """

    /// Parses the arguments after the program's name.
    static func parse(_ arguments: some Sequence<String>) throws(UsageError) -> Command {
        var options = Options()
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            // Compares bytes: an = and a combining mark form another character.
            let pieces = argument.utf8.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let parts = pieces.map { String(Substring($0)) }
            let name = parts[0]
            if parts.count == 2 && isSwitch(name) { throw UsageError(description: "\(name) takes no value") }
            func value() throws(UsageError) -> String {
                if parts.count == 2 { return parts[1] }
                guard let next = rest.popFirst() else { throw UsageError(description: "\(name) needs a value") }
                return next
            }
            switch name {
            case "--listen": options.addresses.append(try address(name, try value()))
            case "--metrics": options.metricsAddress = try address(name, try value())
            case "--max-connections": options.maxConnections = try count(name, try value(), in: 1 ... .max)
            case "--threads": options.threads = try count(name, try value(), in: 0...mostThreads)
            case "--idle-timeout":
                let timeout = try duration(name, try value())
                options.idleTimeout = timeout == .zero ? nil : timeout
            case "--drain-timeout": options.drainTimeout = try duration(name, try value())
            case "--stats":
                let interval = try duration(name, try value())
                guard interval > .zero else { throw UsageError(description: "--stats must be more than 0") }
                options.statisticsInterval = interval
            case "--quiet": options.isQuiet = true
            case "--help", "-h": return .help
            case "--version": return .version
            default: throw UsageError(description: "unknown option '\(argument)'")
            }
        }
        return .serve(options)
    }

    private static func isSwitch(_ name: String) -> Bool { ["--quiet", "--help", "-h", "--version"].contains(name) }

    private static func address(_ name: String, _ text: String) throws(UsageError) -> SocketAddress {
        do throws(SocketAddress.ParseError) { return try SocketAddress(text) } catch {
            throw UsageError(description: "\(name): \(error)")
        }
    }

    private static func count(
        _ name: String, _ text: String, in range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        guard text.first?.isNumber == true, let count = Int(text), range ~= count else {
            let limits = range.upperBound == .max ? "above 0" : "from \(range.lowerBound) to \(range.upperBound)"
            throw UsageError(description: "\(name): '\(text)' is not a number \(limits)")
        }
        return count
    }

    private static func duration(_ name: String, _ text: String) throws(UsageError) -> Duration {
        let units: [(suffix: String, seconds: Double)] = [("ms", 0.001), ("s", 1), ("m", 60)]
        let unit = units.first { text.hasSuffix($0.suffix) } ?? ("", 1)
        let digits = text.dropLast(unit.suffix.count)
        let isPlain = digits.first?.isNumber == true && digits.allSatisfy { $0.isASCII && $0.isNumber || $0 == "." }
        guard isPlain, let number = Double(digits) else {
            throw UsageError(
                description: "\(name): '\(text)' is not a duration; write 250ms, 1.5s, 2m or a number of seconds")
        }
        // A year suffices for any purpose, and a sum of two cannot overflow.
        guard number * unit.seconds <= 31_536_000 else {
            throw UsageError(description: "\(name): '\(text)' is too long; the most is a year, 31536000 seconds")
        }
        return .seconds(number * unit.seconds)
    }
}
