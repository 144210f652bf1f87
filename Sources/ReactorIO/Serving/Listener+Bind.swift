import Reactor
import ReactorLibc

extension Listener {
    /// Listens on `endpoint` at once: clients can connect before the first `accept` or `serve`.
    ///
    /// ```swift
    /// let listener = try Listener.bind("127.0.0.1:0")       // port 0: the kernel picks a free port
    /// print("listening on \(listener.localAddress)")
    /// ```
    ///
    /// Closing the listener frees the port at once (SO_REUSEADDR). An IPv6 listener accepts IPv6 only, so
    /// `["0.0.0.0:80", "[::]:80"]` can share a port. `localhost` means both 127.0.0.1 and ::1, with the same port,
    /// because a client may try either. If the machine lacks one of them, it means the other.
    ///
    /// Several addresses make one listener, with one `serve` and one limit. If one address cannot be bound, none stays
    /// bound. If one socket fails later, all are closed. Each port 0 gets a different port.
    ///
    /// A Unix path must not exist, unless it is a socket on which nothing listens, as a killed process leaves behind.
    /// The file is removed when the listener closes.
    /// - Parameters:
    ///   - endpoint: one or several addresses. Host names are refused, because a server's addresses should not depend
    ///     on a name server.
    ///   - backlog: the maximum number of connections per address that wait to be accepted. `net.core.somaxconn` caps
    ///     it.
    ///   - mode: the permissions of a Unix path. Whoever may write to it may connect. The default follows the process's
    ///     umask.
    ///   - options: options for each listening socket. Its connections inherit most of them. `noDelay` is set on each
    ///     connection anyway.
    /// - Throws: `SocketAddress.ParseError` for a string that is no address, or a `SystemError` that names call and
    ///   address:
    ///   - `EADDRINUSE`;
    ///   - `EACCES` for a privileged port;
    ///   - `EADDRNOTAVAIL` for an address that this machine does not have;
    ///   - `EINVAL` for an empty list, or a `mode` without a path;
    ///   - further errors of bind(2) and listen(2).
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ endpoint: some Endpoint, backlog: Int = 4096, mode: UInt32? = nil, options: [SocketSetting] = []
    ) throws -> Listener {
        let loop = EventLoop.ofCurrentThread
        let places = try endpoint._endpoint.places()
        if places.isEmpty { throw SystemError(.bind, EINVAL, detail: "no address") }
        var sockets: [ListeningSocket] = []
        do {
            for place in places {
                sockets += try ListeningSocket.at(place, backlog: backlog, mode: mode, options, loop.kernel)
            }
        } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        return Listener(sockets, on: loop)
    }

    /// Takes over a listening stream socket, and makes it non-blocking and close-on-exec. Closing the listener keeps
    /// the file of a Unix path, because someone else created it.
    /// - Parameter descriptor: the socket, which the listener then owns.
    /// - Throws: `SystemError`: `EINVAL` for a socket that does not listen, `ENOTSOCK`, `EBADF`, or `EEXIST` from
    ///   `epoll_ctl` if this loop already watches the descriptor. The caller then still owns the descriptor.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(adopting descriptor: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        self.init([try Self.adopt(descriptor, loop)], on: loop)
    }

    private static func adopt(_ descriptor: CInt, _ loop: EventLoop) throws(SystemError) -> ListeningSocket {
        try loop.takeOver(descriptor)
        return try ListeningSocket(adopting: descriptor, loop.kernel)
    }

    /// Makes one listener from the sockets that the service manager has opened for this process (LISTEN_PID, LISTEN_FDS
    /// and LISTEN_FDNAMES): from all, or only from those named `name`. The listener owns them, so call this once for
    /// each name. See sd_listen_fds(3).
    /// - Parameters:
    ///   - name: the FileDescriptorName= of the socket unit.
    ///   - unsettingEnvironment: true to hide the variables from child processes. During the call no other thread may
    ///     read the environment, which the whole process shares.
    /// - Returns: `nil` without a socket, for instance without a service manager.
    /// - Throws: `SystemError` from `fcntl`: `EINVAL` for invalid variables, `EBADF` for a descriptor that is not open,
    ///   or the same errors as `init(adopting:)`. Then no socket is taken over.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func inherited(
        named name: String? = nil, unsettingEnvironment: Bool = false
    ) throws(SystemError) -> Listener? {
        try inherited(named: name, ServiceManager.descriptors(unsettingEnvironment: unsettingEnvironment))
    }

    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    package static func inherited(
        named name: String?, _ descriptors: [ServiceManager.Descriptor]
    ) throws(SystemError) -> Listener? {
        let loop = EventLoop.ofCurrentThread
        var sockets: [ListeningSocket] = []
        for descriptor in descriptors where name == nil || descriptor.name == name {
            sockets.append(try adopt(descriptor.number, loop))
        }
        if sockets.isEmpty { return nil }
        let listener = Listener(sockets, on: loop)
        listener.state.leavesBacklog = true
        return listener
    }
}
