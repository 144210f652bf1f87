import ExampleSupport
import Reactor

/// The command line: `tcp-proxy [--listen HOST:PORT] --backend HOST:PORT … [--balance round-robin] …`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var backends: [String] = []
    private(set) var balancing = Balancing.leastConnections
    private(set) var health = HealthRules()
    private(set) var limits = Limits()

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:8000")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--backend": backends.append(try option.endpoint())
            case "--balance": balancing = try option.choice(["least": .leastConnections, "round-robin": .roundRobin])
            case "--check-interval": health.interval = try option.seconds()
            case "--check-timeout": health.timeout = try option.seconds()
            case "--rise": health.rise = try option.count()
            case "--fall": health.fall = try option.count()
            case "--connect-timeout": limits.connect = try option.seconds()
            case "--idle-timeout": limits.idle = try option.seconds()
            case "--drain-timeout": limits.drain = try option.seconds()
            case "--max-connections": limits.connections = try option.count()
            default: throw option.unknown
            }
        }
        if backends.isEmpty { throw CommandLineOption.UsageError("at least one --backend HOST:PORT is needed") }
    }
}

/// How a backend is chosen among those that are up.
enum Balancing {
    /// The one with the fewest connections of this proxy.
    case leastConnections
    /// One after the other.
    case roundRobin
}

/// When a backend counts as down, and as up again.
struct HealthRules {
    /// The time from one check of a backend to the next.
    var interval = Duration.seconds(2)
    /// How long a check may take.
    var timeout = Duration.seconds(1)
    /// Successful checks in a row after which a backend that was down is up.
    var rise = 2
    /// Failures in a row, of checks and of connects for clients, after which a backend is down.
    var fall = 3
}

/// What one client may take of the proxy.
struct Limits {
    /// How long a connect to one backend may take.
    var connect = Duration.seconds(5)
    /// How long both directions together may be silent.
    var idle = Duration.seconds(300)
    /// How long clients may go on when the proxy ends.
    var drain = Duration.seconds(10)
    /// Clients that are served at once; each takes two descriptors.
    var connections = 10_000
}
