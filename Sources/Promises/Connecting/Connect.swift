import Glibc
import Reactor

/// Opens a stream connection to `address`, TCP or Unix, on this thread's loop.
///
/// ```swift
/// connect(to: .loopback(port: 7000), timeout: .seconds(5))
///     .then { connection in connection.write("ping\n").then { connection.readLine() } }
///     .done { line in print(line ?? "the peer has ended") }
///     .catch { error in print(error) }
/// ```
///
/// If `timeout` expires or the promise is cancelled, the attempt is abandoned and its descriptor closed. Without a
/// timeout, the kernel gives up after about two minutes with `ETIMEDOUT`. For a Unix listener whose backlog stays full,
/// the library gives up after the same time, with `EAGAIN`. See connect(2).
///
/// The promise is rejected with:
/// - the `SystemError` that the kernel reports, such as `ECONNREFUSED`;
/// - `PromiseError.timedOut` if `timeout` expires.
///
/// - Parameters:
///   - address: the address of the peer.
///   - timeout: the limit for the whole operation; `nil` for none.
///   - source: the local address; `nil` lets the kernel choose.
///   - options: socket options, set before the socket connects.
/// - Returns: a promise of the connection.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func connect(
    to address: SocketAddress, timeout: Duration? = nil, from source: SocketAddress? = nil,
    options: [SocketSetting] = [], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    let race = ConnectRace(to: nil, from: source, options, on: EventLoop.ofCurrentThread)
    race.start(timeout, [address])
    return connecting(race, file, line)
}

/// Opens a connection to the first of `addresses` that accepts it.
///
/// The addresses are tried in their order. Each attempt starts 250 ms after the previous one, or immediately when that
/// has failed. Once one attempt succeeds, the others are closed. Cancellation applies to the whole operation.
/// - Parameters:
///   - addresses: the addresses of the peer; at least one.
///   - timeout: the limit for the whole operation; `nil` for none. See the form with one address.
///   - source: the local address; `nil` lets the kernel choose.
///   - options: socket options, set on the socket of each attempt before it connects.
/// - Returns: a promise of the first connection. Rejected with `ConnectError`, which has each address and its error, if
///   all attempts fail, with `SystemError` (`EINVAL`) if the list is empty, and with `PromiseError.timedOut` if
///   `timeout` expires.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func connect(
    to addresses: [SocketAddress], timeout: Duration? = nil, from source: SocketAddress? = nil,
    options: [SocketSetting] = [], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    if addresses.isEmpty {
        return rejected(SystemError(.connect, EINVAL, detail: "no address"), file, line)
    }
    let target = addresses.map(\.description).joined(separator: ", ")
    let race = ConnectRace(to: target, from: source, options, on: EventLoop.ofCurrentThread)
    race.start(timeout, addresses)
    return connecting(race, file, line)
}

/// Opens a connection to an address given as text, or to a host name and port.
///
/// ```swift
/// connect(to: "example.com:80", timeout: .seconds(10)).then { connection in connection.write("…") }
/// ```
///
/// The forms are `127.0.0.1:7000`, `[::1]:7000`, `localhost:7000`, `unix:/run/service.sock`, `unix:@name`, and
/// `example.com:80`. A name is looked up on another thread. Its addresses are tried as in the form with several
/// addresses: IPv6 and IPv4 alternate, starting with the family that the system prefers (RFC 8305). There is no lookup
/// for numeric and Unix addresses, nor for `localhost` and names below it, which are ::1 and 127.0.0.1 (RFC 6761).
///
/// The promise is rejected with:
/// - `SocketAddress.ParseError` if `address` has none of these forms;
/// - the error of `lookup`, usually `NameLookupError`;
/// - `ConnectError` if no address of the name, or of `localhost`, accepts the connection;
/// - the errors of the form with one address.
///
/// - Parameters:
///   - address: the address, or the name and port, of the peer.
///   - timeout: the limit for the whole operation, including the lookup.
///   - source: the local address; `nil` lets the kernel choose. Addresses of another family then fail.
///   - options: socket options, set before the socket connects.
///   - lookup: finds the addresses of a name.
/// - Returns: a promise of the connection.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func connect(
    to address: String, timeout: Duration? = nil, from source: SocketAddress? = nil, options: [SocketSetting] = [],
    lookup: any NameLookup = SystemNameLookup.shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    do throws(SocketAddress.ParseError) {
        switch try Endpoint(address) {
        case .address(let address):
            return connect(to: address, timeout: timeout, from: source, options: options, file: file, line: line)
        case .localhost(let port):
            let race = ConnectRace(to: address, from: source, options, on: EventLoop.ofCurrentThread)
            race.start(timeout, SocketAddress.loopbacks(port: port))
            return connecting(race, file, line)
        case .host(let host, let port):
            let race = ConnectRace(to: address, from: source, options, on: EventLoop.ofCurrentThread)
            race.start(timeout, lookingUp: host, port: port, lookup)
            return connecting(race, file, line)
        }
    } catch {
        return rejected(error, file, line)
    }
}

private func connecting(_ race: ConnectRace, _ file: StaticString, _ line: UInt) -> Promise<Connection> {
    Promise(race.promise.traced(root: "connect", Promise<Connection>.self, file, line))
}

private func rejected(_ error: any Error, _ file: StaticString, _ line: UInt) -> Promise<Connection> {
    let core = PromiseCore(error: error, at: CallSite(file, line))
    return Promise(core.traced(root: "connect", Promise<Connection>.self, file, line))
}
