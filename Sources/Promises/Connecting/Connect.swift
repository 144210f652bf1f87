import Glibc
import Reactor

/// Opens a stream connection to `address`, TCP or Unix, on this thread's loop.
///
/// Rejected with the `SystemError` that the kernel reports, such as `ECONNREFUSED`, or with `PromiseError.timedOut` when
/// `timeout` has passed; the attempt is then given up and its descriptor closed, as it is when the promise is cancelled.
/// Without a timeout the kernel gives up after about two minutes, with `ETIMEDOUT`; so do we with a Unix listener whose
/// backlog stays full, with `EAGAIN`. See connect(2).
/// - Parameters:
///   - timeout: for the whole.
///   - source: the address of this side; without it the kernel's choice.
///   - options: of the socket, set before it connects.
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to address: SocketAddress, timeout: Duration? = nil, from source: SocketAddress? = nil,
    options: [SocketSetting] = [], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    let race = ConnectRace(to: nil, from: source, options, on: EventLoop.ofCurrentThread)
    race.start(timeout, [address])
    return connecting(race, file, line)
}

/// Opens a connection to the first of `addresses` that answers, and tries them in their order: each 250 ms after the one
/// before, or at once when that has failed. The other attempts are then closed.
///
/// Rejected with `ConnectError` if all fail, which names each address and why; with `SystemError`, `EINVAL`, for an empty
/// list. Time-out, cancellation and the other parameters are as in the form with one address, and for the whole.
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to addresses: [SocketAddress], timeout: Duration? = nil, from source: SocketAddress? = nil,
    options: [SocketSetting] = [], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    if addresses.isEmpty {
        return rejected(SystemError(.connect, EINVAL, detail: "to no address"), file, line)
    }
    let target = addresses.map(\.description).joined(separator: ", ")
    let race = ConnectRace(to: target, from: source, options, on: EventLoop.ofCurrentThread)
    race.start(timeout, addresses)
    return connecting(race, file, line)
}

/// Opens a connection to `127.0.0.1:7000`, `[::1]:7000`, `localhost:7000`, `unix:/run/service.sock`, `unix:@name`, or
/// `example.com:80`.
///
/// A name is looked up, away from this thread; its addresses are tried as in the form with several, IPv6 and IPv4 in turn,
/// beginning with the one that the system prefers (RFC 8305). Numeric and Unix addresses and `localhost`, which is
/// 127.0.0.1, are not looked up.
///
/// Rejected with `SocketAddress.ParseError`, with what `lookup` reports, usually `NameLookupError`, with `ConnectError` if
/// none of a name's addresses answers, and as in the form with an address.
/// - Parameters:
///   - timeout: for the whole, the lookup too.
///   - source: the address of this side; without it the kernel's choice. Addresses of another family then fail.
///   - options: of the socket, set before it connects.
///   - lookup: what finds the addresses of a name.
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to address: String, timeout: Duration? = nil, from source: SocketAddress? = nil, options: [SocketSetting] = [],
    lookup: any NameLookup = SystemNameLookup.shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    do throws(SocketAddress.ParseError) {
        switch try Endpoint(address) {
        case .address(let address):
            return connect(to: address, timeout: timeout, from: source, options: options, file: file, line: line)
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
    let core = PromiseCore(error: error, origin: CallSite(file, line))
    return Promise(core.traced(root: "connect", Promise<Connection>.self, file, line))
}
