import Glibc
import Reactor

// How a listener comes to be.

extension Listener {
    /// Listens on `address`, from now on: clients may connect before anybody accepts.
    ///
    /// The port is free again for the next listener as soon as this one is closed (SO_REUSEADDR). An IPv6 listener takes
    /// IPv6 only, so `0.0.0.0` and `[::]` may listen on one port.
    ///
    /// A Unix path must not exist, unless it is a socket at which nobody listens, as a process leaves behind that was killed:
    /// that is replaced. The file goes with the listener.
    /// - Parameters:
    ///   - backlog: how many connections may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
    ///   - mode: the permissions of a Unix path: who may write the file may connect. Without it the process's umask
    ///     decides.
    ///   - options: of the listening socket; most of them pass on to its connections, but for `noDelay`, which each begins with.
    /// - Throws: `SystemError` that names call and address: `EADDRINUSE`, `EACCES` for a privileged port,
    ///   `EADDRNOTAVAIL` for an address that is not this machine's, `EINVAL` for a `mode` of an address that is no path. See
    ///   bind(2) and listen(2).
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ address: SocketAddress, backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws(SystemError) -> Listener {
        try bind([address], backlog: backlog, mode: mode, options: options)
    }

    /// Listens on several addresses as one: one `serve`, and one limit for all of them. If one address cannot be had, none
    /// is kept; if one socket fails later, all are closed. Each port 0 is given a port of its own. See the form with one
    /// address; an empty list is refused with `EINVAL`, and `mode` is for Unix paths only.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ addresses: [SocketAddress], backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws(SystemError) -> Listener {
        let loop = EventLoop.ofCurrentThread
        if addresses.isEmpty { throw SystemError(.bind, EINVAL, detail: "no address") }
        var sockets: [ListeningSocket] = []
        do throws(SystemError) {
            for address in addresses {
                sockets.append(
                    try ListeningSocket(on: address, backlog: backlog, mode: mode, options, loop.kernel))
            }
        } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        return Listener(sockets, on: loop)
    }

    /// Listens on `127.0.0.1:7000`, `[::1]:7000`, `localhost:7000`, which is 127.0.0.1, `unix:/run/service.sock` or
    /// `unix:@name`; see the form with an address. Also throws `SocketAddress.ParseError`, for host names too: which
    /// addresses of this machine are meant should not depend on a name server.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ address: String, backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws -> Listener {
        try bind(try SocketAddress(address), backlog: backlog, mode: mode, options: options)
    }

    /// Listens on several addresses as one; see the form with several addresses, and the one with a text.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ addresses: [String], backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws -> Listener {
        try bind(try addresses.map { try SocketAddress($0) }, backlog: backlog, mode: mode, options: options)
    }

    /// Takes over a stream socket that listens already. It is made non-blocking and close-on-exec; a Unix path stays when the
    /// listener is closed, since it is its maker's.
    /// - Throws: `SystemError`: `EINVAL` for a socket that does not listen, `ENOTSOCK`, `EBADF`. The descriptor is then
    ///   still the caller's.
    @available(*, noasync, message: "an async function has no loop of its own")
    public convenience init(adopting descriptor: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        self.init([try ListeningSocket(adopting: descriptor, loop.kernel)], on: loop)
    }
}
