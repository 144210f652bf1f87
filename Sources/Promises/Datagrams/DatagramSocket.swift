import Glibc
import Reactor

/// A UDP socket on this thread's loop.
///
/// ```swift
/// let socket = try DatagramSocket.bind("127.0.0.1:5353")
/// socket.forEachPacket { bytes, origin in
///     socket.send(answer(to: bytes), to: origin.address).cauterize()
/// }.catch { error in log(error) }
/// ```
///
/// An error of one datagram is the outcome of that call, and the socket goes on; so is `ECONNREFUSED`, by which a
/// connected socket learns that nobody listened for an earlier one. A pending operation keeps the socket alive; without one,
/// letting go of the last reference closes it.
public final class DatagramSocket: IOProducer {
    /// The address of this side, with the real port where 0 was asked for; `nil` only if the kernel refuses to say, which it
    /// does not for a socket that is bound or connected.
    public let localAddress: SocketAddress?
    /// The peer, if the socket is connected: it then receives from that one only.
    public let peerAddress: SocketAddress?
    /// The longest datagram that is received whole.
    public let packetSize: Int
    /// Whether it is closed.
    public private(set) var isClosed = false

    let socket: Socket
    let loop: EventLoop
    /// Who waits for datagrams: one at a time.
    var reception: Reception?
    /// Datagrams that were taken from the kernel and not delivered, because `forEachPacket` ended.
    var leftOver: [Datagram] = []
    /// They are being delivered: none are read meanwhile, since they would take the place of those.
    var isDelivering = false
    private(set) lazy var batch = DatagramBatch(packetSize: packetSize)
    var outgoing: [Outgoing] = []
    /// Calls that have received or sent something.
    var successes = 0
    private var interest: Interest = []

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

    /// A socket that receives at `address`, from anybody. An IPv6 one takes IPv6 only.
    /// - Parameters:
    ///   - packetSize: the longest datagram that is received whole, 1 to 65,535 bytes. Receiving takes a buffer of 32 times
    ///     that, which is made when it is first needed.
    ///   - options: set before it is bound.
    /// - Throws: `SystemError` that names call and address, such as `EADDRINUSE`; `EAFNOSUPPORT` for a Unix address; `EINVAL` for a
    ///   `packetSize` out of range.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ address: SocketAddress, packetSize: Int = 2048, options: [SocketSetting] = []
    ) throws(SystemError) -> DatagramSocket {
        try make(from: address, to: nil, packetSize, options)
    }

    /// The same at `127.0.0.1:5353` or `[::1]:5353`. Also throws `SocketAddress.ParseError`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func bind(
        _ address: String, packetSize: Int = 2048, options: [SocketSetting] = []
    ) throws -> DatagramSocket {
        try bind(try SocketAddress(address), packetSize: packetSize, options: options)
    }

    /// A socket that sends to `peer` and receives from it alone. Nothing is sent by this.
    /// - Parameters:
    ///   - source: the address of this side; without it the kernel's choice.
    ///   - packetSize: as for `bind`.
    ///   - options: set before it is bound.
    /// - Throws: as `bind`, and what connect(2) reports, such as `ENETUNREACH`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func connect(
        to peer: SocketAddress, from source: SocketAddress? = nil, packetSize: Int = 2048,
        options: [SocketSetting] = []
    ) throws(SystemError) -> DatagramSocket {
        try make(from: source, to: peer, packetSize, options)
    }

    /// The same for `127.0.0.1:5353` or `[::1]:5353`. Names are not looked up. Also throws `SocketAddress.ParseError`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func connect(
        to peer: String, from source: SocketAddress? = nil, packetSize: Int = 2048, options: [SocketSetting] = []
    ) throws -> DatagramSocket {
        try connect(to: try SocketAddress(peer), from: source, packetSize: packetSize, options: options)
    }

    private static func make(
        from source: SocketAddress?, to peer: SocketAddress?, _ packetSize: Int, _ options: [SocketSetting]
    ) throws(SystemError) -> DatagramSocket {
        guard (1...65535).contains(packetSize) else {
            throw SystemError(.receiveMessages, EINVAL, detail: "packetSize: \(packetSize), which is 1 to 65535")
        }
        let loop = EventLoop.ofCurrentThread
        let socket = try Socket.datagram(from: source, to: peer, options, loop.kernel)
        return DatagramSocket(socket, packetSize: packetSize, on: loop)
    }

    // MARK: Options

    /// Sets an option of the socket; as `Connection.set`.
    public func set<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        let setting = SocketSetting.set(option, to: value)
        if isClosed { throw SystemError(.setSocketOption, EBADF, detail: "\(setting): the socket is closed") }
        try socket.apply(setting)
    }

    /// The value of an option as the kernel has it; as `Connection.value`.
    public func value<Value>(of option: SocketOption<Value>) throws(SystemError) -> Value {
        if isClosed { throw SystemError(.getSocketOption, EBADF, detail: "\(option.name): the socket is closed") }
        return try socket.value(of: option)
    }

    // MARK: Ending

    /// Closes the socket. Operations that wait are rejected with `ECANCELED`, later ones with `EBADF`. Again: nothing
    /// happens.
    public func close() { end("the socket was closed") }

    private func end(_ reason: String) {
        guard !isClosed else { return }
        release()
        leftOver = []
        let (reception, outgoing) = (reception, outgoing)
        self.reception = nil
        self.outgoing = []
        reception?.promise.reject(SystemError(.receiveMessages, ECANCELED, detail: reason))
        for each in outgoing { each.promise.reject(SystemError(.sendMessages, ECANCELED, detail: reason)) }
    }

    private func release() {
        isClosed = true
        interest = []
        loop.closeDescriptor(socket.fd)
    }

    /// A waiting operation was cancelled. Of several packets that are sent as one, none may have gone.
    func stop(_ promise: PromiseCore) -> Bool {
        if reception?.promise === promise {
            reception = nil
        } else {
            guard let index = outgoing.firstIndex(where: { $0.promise === promise }), outgoing[index].sent == 0 else {
                return false
            }
            outgoing.remove(at: index)
        }
        updateInterest()
        return true
    }

    func updateInterest() {
        var wanted: Interest = []
        if reception != nil && !isDelivering && leftOver.isEmpty { wanted.insert(.reading) }
        if !outgoing.isEmpty { wanted.insert(.writing) }
        guard wanted != interest, !isClosed else { return }
        interest = wanted
        do throws(SystemError) {
            try loop.setInterest(wanted, of: socket.fd, handler: self)
        } catch {
            // The kernel refuses the registration: nothing would ever be reported.
            interest = []
            let promises = [reception?.promise].compactMap { $0 } + outgoing.map(\.promise)
            reception = nil
            outgoing = []
            for promise in promises { promise.reject(error) }
        }
    }
}

extension DatagramSocket: ReadinessHandler {
    package func loopWillEnd() { end("the loop has ended") }

    package func descriptorIsReady(_ ready: Interest) {
        interest.subtract(ready)
        if ready.contains(.writing) { flush() }
        if ready.contains(.reading), !isClosed { receiveNow() }
        updateInterest()
    }

    /// The socket was ready, and a call found nothing, or failed for another reason than a datagram.
    func noteFutileReadiness(_ call: SystemCall, _ result: Int) {
        loop.noteFutileReadiness(
            of: socket.fd, progress: successes,
            SystemError(call, CInt(-result), detail: (peerAddress ?? localAddress)?.description))
    }
}

extension DatagramSocket: CustomStringConvertible {
    /// `DatagramSocket(127.0.0.1:5353)`, with the address of this side.
    public var description: String { "DatagramSocket(\(localAddress?.description ?? "unbound"))" }
}
