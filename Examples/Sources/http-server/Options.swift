import ExampleSupport
import Reactor

/// The command line: `http-server [--listen HOST:PORT] [--head-timeout SECONDS] …`.
struct Options {
    private(set) var address: SocketAddress
    private(set) var limits = Limits()
    /// The files of `--certificate` and `--key`. Without them the server speaks plain HTTP.
    private(set) var certificate: String?
    private(set) var key: String?

    init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:8080")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--certificate": certificate = option.value
            case "--key": key = option.value
            case "--idle-timeout": limits.idle = try option.seconds()
            case "--head-timeout": limits.headTime = try option.seconds()
            case "--body-timeout": limits.requestTime = try option.seconds()
            case "--drain-timeout": limits.drain = try option.seconds()
            case "--slowness": limits.slowness = try option.seconds()
            case "--max-head": limits.head = try option.bytes()
            case "--max-body": limits.body = try option.bytes()
            default: throw option.unknown
            }
        }
        if (certificate == nil) != (key == nil) {
            throw CommandLineOption.UsageError("--certificate and --key need each other")
        }
    }
}

/// What one client may take of the server.
struct Limits {
    /// Bytes that all clients together may have sent in unfinished requests, or not read of their answers.
    var memory = 256 << 20
    /// Bytes of a head, and of the trailers of a body.
    var head = 16_384
    /// Bytes of a body.
    var body = 1 << 20
    /// Fields of a head.
    static let fields = 100
    /// Bytes of the line before a chunk.
    static let chunkLine = 256
    /// How long a client may be silent, between two requests or while it does not read an answer.
    var idle = Duration.seconds(60)
    /// How long the rest of a head may take once its first bytes have arrived.
    var headTime = Duration.seconds(10)
    /// How long a request may take to arrive, body included.
    var requestTime = Duration.seconds(30)
    /// Bytes a second, at which a request may take longer.
    var rate = 1000
    /// How long requests under way may take when the server ends.
    var drain = Duration.seconds(10)
    /// How long `/slow` takes.
    var slowness = Duration.seconds(1)
}
