import Glibc
import Reactor

// Creation of listeners.

extension Listener {
    /// Listens on `address` from now on: clients can connect before the first `accept` or `serve`.
    ///
    /// ```swift
    /// let listener = try Listener.bind("127.0.0.1:0")       // port 0: the kernel picks a free port
    /// print("listening on \(listener.localAddress)")
    /// ```
    ///
    /// The port is free for another listener as soon as this one is closed (SO_REUSEADDR). An IPv6 listener accepts
    /// IPv6 only, so `0.0.0.0` and `[::]` can listen on one port.
    ///
    /// A Unix path must not exist, unless it is a socket without a listener, such as a killed process leaves: that is
    /// replaced. The file is removed with the listener.
    /// - Parameters:
    ///   - backlog: how many connections may wait to be accepted; the kernel limits it to `net.core.somaxconn`.
    ///   - mode: the permissions of a Unix path: whoever may write the file may connect. Without a mode the process's
    ///     umask decides.
    ///   - options: options of the listening socket. Its connections inherit most of them; `noDelay` is set on each
    ///     connection anyway.
    ///   - address: the address to listen on; port 0 lets the kernel choose one.
    /// - Returns: the listener, on this thread's loop.
    /// - Throws: `SystemError` with call and address:
    ///   - `EADDRINUSE`;
    ///   - `EACCES` for a privileged port;
    ///   - `EADDRNOTAVAIL` for an address that is not this machine's;
    ///   - `EINVAL` for a `mode` of an address that is not a path;
    ///   - further errors of bind(2) and listen(2).
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ address: SocketAddress, backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws(SystemError) -> Listener {
        try bind([address], backlog: backlog, mode: mode, options: options)
    }

    /// Listens on several addresses as one listener: with one `serve`, and one limit for all of them. If one address
    /// cannot be bound, none stays bound; if one socket fails later, all are closed. Each port 0 gets a different port.
    /// See the form with one address.
    ///
    /// ```swift
    /// let listener = try Listener.bind(["0.0.0.0:80", "[::]:80"])
    /// ```
    ///
    /// - Parameters:
    ///   - addresses: the addresses to listen on; at least one.
    ///   - backlog: how many connections may wait to be accepted, for each address.
    ///   - mode: the permissions of Unix paths; allowed only if all addresses are such paths.
    ///   - options: options of each listening socket.
    /// - Returns: one listener for all addresses.
    /// - Throws: as the form with one address, and `EINVAL` for an empty list. `mode` is allowed for Unix paths only.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ addresses: [SocketAddress], backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws(SystemError) -> Listener {
        try bind(addresses) { address, kernel throws(SystemError) in
            [try ListeningSocket(on: address, backlog: backlog, mode: mode, options, kernel)]
        }
    }

    /// Listens on `127.0.0.1:7000`, `[::1]:7000`, `localhost:7000`, `unix:/run/service.sock` or `unix:@name`; see the
    /// form with a `SocketAddress`.
    ///
    /// `localhost` is 127.0.0.1 and ::1, with the same port, since a client may try either; it is one of them on a
    /// machine that lacks the other.
    /// - Parameters:
    ///   - address: the address to listen on, as text.
    ///   - backlog: how many connections may wait to be accepted.
    ///   - mode: the permissions of a Unix path.
    ///   - options: options of the listening socket.
    /// - Returns: the listener, on this thread's loop.
    /// - Throws: also `SocketAddress.ParseError`, including for host names: the addresses of a server should not depend
    ///   on a name server.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ address: String, backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws -> Listener {
        try bind([address], backlog: backlog, mode: mode, options: options)
    }

    /// Listens on several addresses as one listener; see the form with several addresses, and the one with a text.
    /// - Parameters:
    ///   - addresses: the addresses to listen on, as texts; at least one.
    ///   - backlog: how many connections may wait to be accepted, for each address.
    ///   - mode: the permissions of Unix paths; allowed only if all addresses are such paths.
    ///   - options: options of each listening socket.
    /// - Returns: one listener for all addresses.
    /// - Throws: the errors of both.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ addresses: [String], backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws -> Listener {
        let endpoints = try addresses.map { text in try Endpoint(text, takesNames: false) }
        return try bind(endpoints) { endpoint, kernel throws(SystemError) in
            switch endpoint {
            case .localhost(let port):
                try ListeningSocket.localhost(port: port, backlog: backlog, mode: mode, options, kernel)
            case .address(let address):
                [try ListeningSocket(on: address, backlog: backlog, mode: mode, options, kernel)]
            case .host: []
            }
        }
    }

    /// Opens the sockets of each of `places`, or none.
    private static func bind<Place>(
        _ places: [Place], _ open: (Place, CountingSyscalls) throws(SystemError) -> [ListeningSocket]
    ) throws(SystemError) -> Listener {
        let loop = EventLoop.ofCurrentThread
        if places.isEmpty { throw SystemError(.bind, EINVAL, detail: "no address") }
        var sockets: [ListeningSocket] = []
        do throws(SystemError) { for place in places { sockets += try open(place, loop.kernel) } } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        return Listener(sockets, on: loop)
    }

    /// Takes over a stream socket that already listens. It is made non-blocking and close-on-exec. Closing the listener
    /// does not remove the file of a Unix path, since another owner created it.
    /// - Parameter descriptor: the socket, which the listener then owns.
    /// - Throws: `SystemError`: `EINVAL` for a socket that does not listen, `ENOTSOCK`, `EBADF`. The caller then still
    ///   owns the descriptor.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(adopting descriptor: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        self.init([try ListeningSocket(adopting: descriptor, loop.kernel)], on: loop)
    }
}
