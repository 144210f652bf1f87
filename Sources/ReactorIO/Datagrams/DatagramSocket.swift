import Promises
import Reactor
import ReactorLibc

/// A UDP socket on this thread's loop.
///
/// ```swift
/// let socket = try DatagramSocket.bind("127.0.0.1:5353")
/// socket.forEachPacket { bytes, origin in
///     socket.post(answer(to: bytes), to: origin.address)
/// }.catch { error in log(error) }
/// ```
///
/// The socket outlives an error about one datagram, even `ECONNREFUSED`, which means that no process received an
/// earlier datagram on a connected socket; see `SystemError.leavesSocketUsable`. A pending operation keeps the socket
/// alive. Otherwise releasing the last reference closes the socket.
public final class DatagramSocket: CancellableWork {
    /// The local address, with the actual port if the caller asked for port 0. `nil` if the kernel does not report the
    /// address, which it always does for a bound or connected socket.
    public let localAddress: SocketAddress?
    /// The peer of a connected socket, which receives datagrams only from that address.
    public let peerAddress: SocketAddress?
    package let packetSize: Int
    @exclusivity(unchecked) package private(set) var isClosed = false

    let socket: Socket
    let loop: EventLoop
    // `@exclusivity(unchecked)`: one thread, and no code that could call back runs during a change of a field.
    @exclusivity(unchecked) var reception: Reception?
    private(set) lazy var batch = DatagramBatch(packetSize: packetSize)
    /// The undelivered datagrams in the batch. Until they are delivered, nothing is received, because that would
    /// overwrite them.
    @exclusivity(unchecked) var received = 0..<0
    /// True while a closure runs with bytes from the batch.
    @exclusivity(unchecked) var isDelivering = false
    @exclusivity(unchecked) var outgoing: [Outgoing] = []
    /// True when the kernel has not accepted the first of `outgoing`. If false, all of `outgoing` are posts, sent at
    /// the end of the turn.
    @exclusivity(unchecked) var waitsForRoom = false
    @exclusivity(unchecked) var hasPostJob = false
    @exclusivity(unchecked) package var waitingPosts = 0
    /// The number of posts that the kernel refused, or that were dropped for lack of room or after a close.
    public internal(set) var lostPosts = 0
    @exclusivity(unchecked) var successes = 0
    @exclusivity(unchecked) private var interest: Interest = []

    private init(_ socket: Socket, packetSize: Int, on loop: EventLoop) {
        self.socket = socket
        self.packetSize = packetSize
        self.loop = loop
        localAddress = socket.localAddress
        peerAddress = socket.peerAddress
        loop.forget(socket.fd)
    }

    deinit {
        if isClosed { return }
        loop.performCleanup { [loop, socket] in loop.closeDescriptor(socket.fd) }
    }

    /// Makes a socket that receives at `endpoint` from any sender. An IPv6 socket receives IPv6 only.
    /// - Parameters:
    ///   - endpoint: the local address. `localhost` is 127.0.0.1 here, and other names are not looked up.
    ///   - packetSize: the maximum length of a datagram received without truncation, from 1 to 65,535 bytes. The first
    ///     receive allocates a buffer of 32 times that size.
    ///   - options: socket options, set before the socket is bound.
    /// - Throws: `SocketAddress.ParseError` for a string that is no address, or a `SystemError` that names the call and
    ///   the address:
    ///   - the kernel's error, such as `EADDRINUSE`;
    ///   - `EAFNOSUPPORT` for a Unix address;
    ///   - `EINVAL` for several addresses, or a `packetSize` out of range.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func bind(
        _ endpoint: some Endpoint, packetSize: Int = 2048, options: [SocketSetting] = []
    ) throws -> DatagramSocket {
        try make(from: endpoint._endpoint.address(for: .bind), to: nil, packetSize, options)
    }

    /// Makes a socket that sends to `peer` and receives only from it. Sends nothing itself. `bind` describes the other
    /// arguments. Without a `source`, the kernel chooses the local address.
    /// - Throws: the errors of `bind` and of connect(2), such as `ENETUNREACH`.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func connect(
        to peer: some Endpoint, from source: SocketAddress? = nil, packetSize: Int = 2048,
        options: [SocketSetting] = []
    ) throws -> DatagramSocket {
        try make(from: source, to: peer._endpoint.address(for: .connect), packetSize, options)
    }

    private static func make(
        from source: SocketAddress?, to peer: SocketAddress?, _ packetSize: Int, _ options: [SocketSetting]
    ) throws(SystemError) -> DatagramSocket {
        guard (1...65535).contains(packetSize) else {
            throw SystemError(.receiveMessages, EINVAL, detail: "packetSize: \(packetSize), which must be 1 to 65535")
        }
        let loop = EventLoop.ofCurrentThread
        let socket = try Socket.datagram(from: source, to: peer, options, loop.kernel)
        return DatagramSocket(socket, packetSize: packetSize, on: loop)
    }

    // MARK: Options

    /// Sets an option of the socket; see `Connection.set`.
    /// - Throws: `SystemError` from setsockopt(2); `EBADF` after `close`.
    public func set<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        let setting = SocketSetting.set(option, to: value)
        if isClosed { throw SystemError(.setSocketOption, EBADF, detail: "\(setting): the socket is closed") }
        try socket.apply(setting)
    }

    /// Reads an option of the socket from the kernel; see `Connection.value`.
    /// - Throws: `SystemError` from getsockopt(2); `EBADF` after `close`.
    public func value<Value>(of option: SocketOption<Value>) throws(SystemError) -> Value {
        if isClosed { throw SystemError(.getSocketOption, EBADF, detail: "\(option.name): the socket is closed") }
        return try socket.value(of: option)
    }

    // MARK: End

    /// Closes the socket. Pending operations are rejected with `ECANCELED`, and later ones with `EBADF`.
    public func close() { end("the socket was closed") }

    private func end(_ reason: String) {
        guard !isClosed else { return }
        if !waitsForRoom { flush() }
        // An inline handler of a send may have closed the socket.
        if isClosed { return }
        isClosed = true
        interest = []
        loop.closeDescriptor(socket.fd)
        received = 0..<0
        rejectAll { SystemError($0, ECANCELED, detail: reason) }
    }

    private func rejectAll(_ error: (SystemCall) -> SystemError) {
        let (reception, outgoing) = (reception, outgoing)
        self.reception = nil
        self.outgoing = []
        waitsForRoom = false
        lostPosts += waitingPosts
        waitingPosts = 0
        reception?.promise.reject(error(.receiveMessages))
        for send in outgoing { send.promise?.reject(error(.sendMessages)) }
    }

    /// Ends a cancelled operation. Returns false for a send of several datagrams if some have already been sent.
    package func stop(_ promise: PromiseCore) -> Bool {
        if reception?.promise === promise {
            reception = nil
        } else {
            guard let index = outgoing.firstIndex(where: { $0.promise === promise }), outgoing[index].sent == 0 else {
                return false
            }
            outgoing.remove(at: index)
            if outgoing.isEmpty { waitsForRoom = false }
        }
        updateInterest()
        return true
    }

    func updateInterest() {
        var wanted: Interest = []
        if reception != nil && !isDelivering && received.isEmpty { wanted.insert(.reading) }
        if waitsForRoom { wanted.insert(.writing) }
        guard wanted != interest, !isClosed else { return }
        interest = wanted
        do throws(SystemError) {
            try loop.setInterest(wanted, of: socket.fd, handler: self)
        } catch {
            // The kernel refused the registration, so it would never report an event.
            interest = []
            rejectAll { _ in error }
        }
    }
}

extension DatagramSocket: ReadinessHandler {
    package func loopWillEnd() { end("the loop has ended") }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        interest.subtract(ready)
        if ready.contains(.writing) { flush() }
        if ready.contains(.reading), !isClosed { receiveNow() }
        updateInterest()
        return []
    }

    /// Notes that the socket was ready, but a call found nothing, or failed for a reason that concerns no datagram.
    func noteSpuriousReadiness(_ call: SystemCall, _ result: Int) {
        loop.noteSpuriousReadiness(
            of: socket.fd, progress: successes,
            SystemError(call, CInt(-result), detail: (peerAddress ?? localAddress)?.description))
    }
}

extension DatagramSocket: CustomStringConvertible {
    /// `DatagramSocket(127.0.0.1:5353)`, with the local address.
    public var description: String { "DatagramSocket(\(localAddress?.description ?? "unbound"))" }
}
