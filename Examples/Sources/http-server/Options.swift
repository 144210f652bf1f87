import ExampleSupport
import Reactor
import ReactorHTTP

/// The command line: `http-server [--listen HOST:PORT] [--head-timeout SECONDS] …`.
package struct Options {
    private(set) var address: SocketAddress
    package private(set) var http = HTTPOptions()
    /// The time limit for requests in progress when the server ends.
    private(set) var drainTimeout = Duration.seconds(10)
    /// The delay of `/slow`.
    private(set) var slowness = Duration.seconds(1)
    /// The files of `--certificate` and `--key`. Without them the server speaks plain HTTP.
    private(set) var certificate: String?
    private(set) var key: String?
    /// The address of the console.
    private(set) var console: String?
    /// The folder of `/files/`.
    private(set) var files: String?

    package init(_ arguments: some Sequence<String>) throws {
        address = try SocketAddress("127.0.0.1:8080")
        for option in try CommandLineOption.all(in: arguments) {
            switch option.name {
            case "--listen": address = try option.address()
            case "--console": console = option.value
            case "--certificate": certificate = option.value
            case "--key": key = option.value
            case "--files": files = option.value
            case "--idle-timeout": http.idle = try option.seconds()
            case "--head-timeout": http.headTime = try option.seconds()
            case "--body-timeout": http.requestTime = try option.seconds()
            case "--drain-timeout": drainTimeout = try option.seconds()
            case "--slowness": slowness = try option.seconds()
            case "--max-head": http.maxHead = try option.bytes()
            case "--max-body": http.maxBody = try option.bytes()
            default: throw option.unknown
            }
        }
        if (certificate == nil) != (key == nil) {
            throw CommandLineOption.UsageError("--certificate and --key need each other")
        }
    }
}
