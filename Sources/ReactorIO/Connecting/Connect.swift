import Promises
import Reactor
import ReactorLibc

/// Opens a stream connection, TCP or Unix, on this thread's loop.
///
/// ```swift
/// connect(to: "example.com:80", timeout: .seconds(5))
///     .then { connection in connection.write("ping\n").then { connection.readLine() } }
///     .done { line in print(line ?? "the peer has ended") }
///     .catch { error in print(error) }
/// ```
///
/// A host name is looked up on another thread. Its addresses are tried in order, except that IPv6 and IPv4 alternate,
/// starting with the system's preferred family. An array's addresses are tried in order. Each attempt starts 250 ms
/// after the previous one, or when that one fails. The first success closes the others. See RFC 8305.
///
/// If `timeout` expires or the promise is cancelled, the attempts are abandoned and their descriptors closed. Without a
/// timeout, the kernel gives up after about two minutes with `ETIMEDOUT`. For a Unix listener whose backlog stays full,
/// the library gives up after that time with `EAGAIN`. See connect(2).
///
/// The promise is rejected with:
/// - `SocketAddress.ParseError` for a string that is no endpoint, and for a host name in an array;
/// - for a single address, the `SystemError` that the kernel reports, such as `ECONNREFUSED`;
/// - for a name, `localhost` or an array, `ConnectError`, which lists each address with its error;
/// - the error from `lookup`, usually `NameLookupError`;
/// - `SystemError` (`EINVAL`) for an empty array;
/// - `PromiseError.timedOut` if `timeout` expires.
///
/// Addresses of another family than `source` fail. Those that `lookup` does not allow fail with `EACCES`.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func connect(
    to endpoint: some Endpoint, timeout: Duration? = nil, from source: SocketAddress? = nil,
    options: [SocketSetting] = [], lookup: any NameLookup = SystemNameLookup.shared, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<Connection> {
    let endpoint = endpoint._endpoint
    let core: PromiseCore
    do {
        let places = try endpoint.places(takesNames: true)
        guard let first = places.first else { throw SystemError(.connect, EINVAL, detail: "no address") }
        var target: String? = endpoint.text
        if case .address = first, !endpoint.isList { target = nil }
        let race = ConnectRace(to: target, from: source, options, lookup, on: EventLoop.ofCurrentThread)
        if case .host(let host, let port) = first {
            race.start(timeout, lookingUp: host, port: port)
        } else {
            race.start(timeout, places.flatMap(\.addresses))
        }
        core = race.promise
    } catch {
        core = PromiseCore(error: error, at: CallSite(file, line))
    }
    return Promise(core.traced(root: "connect", Promise<Connection>.self, file, line))
}
