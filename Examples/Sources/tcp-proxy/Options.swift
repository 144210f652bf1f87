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

/// The choice among the backends that are up.
enum Balancing {
    /// The one with the fewest connections from this proxy.
    case leastConnections
    /// Each in turn.
    case roundRobin
}

/// The rules by which a backend becomes down, and up again.
struct HealthRules {
    /// The time between two checks of a backend.
    var interval = Duration.seconds(2)
    /// The time limit of a check.
    var timeout = Duration.seconds(1)
    /// Consecutive successful checks after which a backend is up again.
    var rise = 2
    /// Consecutive failures, of checks and of connects for clients, after which a backend is down.
    var fall = 3
}

/// The limits of the proxy and of its clients.
struct Limits {
    /// The time limit of a connect to one backend.
    var connect = Duration.seconds(5)
    /// The idle limit of both directions together.
    var idle = Duration.seconds(300)
    /// The time limit for clients when the proxy ends.
    var drain = Duration.seconds(10)
    /// Maximum number of clients; each takes two descriptors.
    var connections = 10_000
}
