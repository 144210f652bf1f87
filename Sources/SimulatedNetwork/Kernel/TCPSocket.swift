import CLinux
import Glibc
import Reactor

/// A simulated TCP socket. What a program can observe follows tcp(7) and the kernel's own code; below that, segments are
/// closures that arrive at the other socket after the time that their link takes.
final class TCPSocket: InternetSocket {
    enum Phase {
        /// Not connected yet, or not any more.
        case closed
        case listening
        case connecting
        case established
    }

    /// How far connect(2) has told of the connection: SS_UNCONNECTED, SS_CONNECTING, SS_CONNECTED of the kernel.
    private enum Told { case nothing, begun, all, ended }

    private(set) var phase = Phase.closed
    private var told = Told.nothing
    private var error: CInt = 0
    /// RCV_SHUTDOWN and SEND_SHUTDOWN.
    private var receivingHasEnded = false
    private var sendingHasEnded = false

    // Receiving.
    private var received = ByteQueue()
    private var finHasArrived = false
    /// Bytes that were read since the sender has last learnt of the room.
    private var unreported = 0

    // Sending.
    private var unsent = ByteQueue()
    private var finIsSent = false
    private var finIsAcknowledged = false
    private var unacknowledged = 0
    /// The part of the peer's receive buffer that is in use, as far as this side knows.
    private var windowUsed = 0
    private var lacksRoom = false
    private var stalledSince: Int64?

    private var peer: TCPSocket?
    private(set) var backlog: AcceptBacklog<TCPSocket>?
    private var attempts = 0
    /// Whether this is an accepted connection, on the port of its listener.
    private var sharesPort = false

    override var type: Int { clinux_SOCK_STREAM }
    override var mayBind: Bool { phase == .closed }
    override var hasPeer: Bool { phase == .established }

    // MARK: Readiness

    override var readiness: UInt32 {
        if phase == .listening { return backlog!.isEmpty ? 0 : Self.readable }
        var ready: UInt32 = error != 0 ? Self.failed : 0
        if phase == .closed || (receivingHasEnded && sendingHasEnded) { ready |= Self.hungUp }
        if receivingHasEnded { ready |= Self.readable | Self.readEnded }
        if phase == .connecting { return ready }
        if !received.isEmpty { ready |= Self.readable }
        if sendingHasEnded || hasMuchRoom {
            ready |= Self.writable
        } else {
            lacksRoom = true
        }
        return ready
    }

    private var queued: Int { unsent.count + unacknowledged }
    /// As the kernel: writable when a third of the buffer is free.
    private var hasMuchRoom: Bool { queued * 3 <= sendCapacity * 2 }

    override var waiting: (incoming: Int, outgoing: Int) {
        if phase == .listening { return (-Int(EINVAL), -Int(EINVAL)) }
        return (received.count, queued + (finIsSent && !finIsAcknowledged ? 1 : 0))
    }

    override func computedOption(_ level: CInt, _ name: CInt) -> CInt? {
        guard level == SOL_SOCKET else { return super.computedOption(level, name) }
        switch name {
        case SO_ERROR:
            defer { error = 0 }
            return error
        case SO_ACCEPTCONN: return phase == .listening ? 1 : 0
        default: return super.computedOption(level, name)
        }
    }

    private func takeError() -> CInt {
        defer { error = 0 }
        return error
    }

    // MARK: Listening

    override func listen(_ backlog: Int) -> Int {
        if told != .nothing { return -Int(EINVAL) }
        switch phase {
        case .listening: self.backlog!.limit = backlog
        case .closed:
            if !hasPort, let failure = bindToAnyPort() { return failure }
            if host.hasConflict(self, at: local!, listens: true) { return -Int(EADDRINUSE) }
            self.backlog = AcceptBacklog(limit: backlog)
            phase = .listening
            host.listeners[local!.port, default: []].append(self)
            notify()
        case .connecting, .established: return -Int(EINVAL)
        }
        return 0
    }

    override func accept(_ peer: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        guard phase == .listening else { return -Int(EINVAL) }
        if backlog!.isEmpty { return -Int(EAGAIN) }
        guard process.hasRoomForFile else { return -Int(EMFILE) }
        let child = backlog!.take()
        child.remote?.store(in: peer)
        return Int(process.open(child))
    }

    /// A client's first segment. `client` is the socket at the other end of `way`.
    static func synDidArrive(from client: TCPSocket, at target: SocketAddress, on host: SimulatedHost.Stack) {
        let back = host.network.way(from: host, to: client.host)
        guard let listener = host.listener(at: target) else {
            return back.send(.reset, from: target, to: client.local!) { client.resetDidArrive() }
        }
        // As if the segment were lost: the client repeats it.
        if listener.backlog!.isFull { return client.repeatSyn() }
        let child = TCPSocket(listener.process, target.family)
        child.local = target
        child.remote = client.local
        child.phase = .established
        child.told = .all
        child.peer = client
        // What a shutdown before listen(2) has left, which the kernel copies too.
        (child.receivingHasEnded, child.sendingHasEnded) = (listener.receivingHasEnded, listener.sendingHasEnded)
        child.inherit(listener)
        host.accepted[target.port, default: []].insert(ObjectIdentifier(child))
        child.sharesPort = true
        back.send(.synAck, from: target, to: client.local!) { client.wasAccepted(by: child, of: listener) }
    }

    private func inherit(_ listener: TCPSocket) {
        for name in [SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, SO_SNDBUF, SO_RCVBUF] {
            if let value = listener.option(SOL_SOCKET, name) { setWord(SOL_SOCKET, name, value) }
        }
    }

    private func wasAccepted(by child: TCPSocket, of listener: TCPSocket) {
        // Closed meanwhile, or this is the answer to a segment that was repeated.
        guard phase == .connecting, peer == nil else { return way?.reset(child, from: self) ?? () }
        phase = .established
        peer = child
        host.network.noteStream(self)
        way!.send(.ack, from: local!, to: remote!) {
            if listener.phase != .listening || listener.backlog!.isFull { return child.abandon() }
            listener.backlog!.add(child)
            listener.notify(Self.readable)
        }
        notify()
        pump()
    }

    // MARK: Connecting

    override func connect(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        switch told {
        case .all: return -Int(EISCONN)
        case .ended: return -Int(EINVAL)
        case .begun:
            if phase == .connecting { return -Int(EALREADY) }
            if phase == .established {
                told = .all
                return 0
            }
            // The attempt has failed, which is told before another may begin.
            let code = takeError()
            forgetConnection()
            return -Int(code != 0 ? code : ECONNABORTED)
        case .nothing: if phase != .closed { return -Int(EISCONN) }
        }
        if family == AF_INET6 && length < 24 { return -Int(EINVAL) }
        guard let target = parse(raw, length, takesUnspecified: true) else { return -Int(EAFNOSUPPORT) }
        if let failure = chooseLocalAddress(for: target) { return failure }
        remote = target
        way = network.host(of: target, from: host).map { network.way(from: host, to: $0) }
        phase = .connecting
        told = .begun
        (finHasArrived, finIsSent, finIsAcknowledged) = (false, false, false)
        error = 0
        attempts = 0
        sendSyn()
        return -Int(EINPROGRESS)
    }

    /// Makes the socket new, but for what bind(2) has set.
    private func forgetConnection() {
        told = .nothing
        if phase != .closed { host.release(self) }
        phase = .closed
        peer = nil
        remote = nil
        error = 0
        (receivingHasEnded, sendingHasEnded, finHasArrived) = (false, false, false)
        received.removeAll()
        unsent.removeAll()
        if !keepsAddress { local = local.map { .unspecified(family, port: $0.port) } }
    }

    private func sendSyn() {
        let target = remote!
        guard let host = host.network.host(of: target, from: host) else {
            // Nobody answers at that address of the link: the kernel gives up after three seconds.
            return kernel.after(.seconds(3)) { [self] in if phase == .connecting { fail(EHOSTUNREACH) } }
        }
        let way = self.host.network.way(from: self.host, to: host)
        switch way.connects {
        case .normal:
            way.send(.syn, from: local!, to: target) { [self] in
                if phase != .connecting || peer != nil { return }
                if host.isUp { Self.synDidArrive(from: self, at: target, on: host) } else { repeatSyn() }
            }
            if way.isHeldUp { giveUpLater() }
        case .refused: way.send(.syn, from: local!, to: target) { [self] in resetDidArrive() }
        case .unreachable:
            way.send(.syn, from: local!, to: target) { [self] in if phase == .connecting { fail(EHOSTUNREACH) } }
        case .ignored: repeatSyn()
        }
    }

    /// After 1, 3, 7, … seconds, and six times, as net.ipv4.tcp_syn_retries has it.
    private func repeatSyn() {
        attempts += 1
        let isLast = attempts > 6
        kernel.after(.seconds(Int64(1) << Int64(min(attempts - 1, 6)))) { [self] in
            guard phase == .connecting, peer == nil else { return }
            if isLast { fail(ETIMEDOUT) } else { sendSyn() }
        }
    }

    private func giveUpLater() {
        kernel.after(.seconds(127)) { [self] in if phase == .connecting && peer == nil { fail(ETIMEDOUT) } }
    }

    // MARK: Sending

    /// The way to the peer, found by the first use, since each packet needs it.
    private lazy var way = remote.flatMap { network.host(of: $0, from: host) }.map { network.way(from: host, to: $0) }
    private var network: SimulatedKernel { host.network }

    override func send(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        if error != 0 { return -Int(takeError()) }
        if phase == .connecting { return -Int(EAGAIN) }
        if phase != .established || sendingHasEnded { return -Int(EPIPE) }
        let total = pieces.reduce(0) { $0 + $1.iov_len }
        if total == 0 { return 0 }
        let count = min(process.faults.shorten(total), sendCapacity - queued)
        if count <= 0 {
            lacksRoom = true
            return -Int(EAGAIN)
        }
        unsent.append(gather(pieces, count)[...])
        pump()
        return count
    }

    /// Sends what the peer's window has room for.
    private func pump() {
        guard let peer, let way, phase == .established else { return }
        let wasStalled = stalledSince != nil
        defer { if way.isHeldUp && !wasStalled { giveUpUnlessAcknowledged() } }
        while !unsent.isEmpty {
            let room = peer.receiveCapacity - windowUsed
            if room <= 0 { return }
            let bytes = unsent.takePiece(upTo: min(way.nextSegment(), room))
            if unacknowledged == 0 { stalledSince = kernel.now }
            unacknowledged += bytes.count
            windowUsed += bytes.count
            way.send(.data(bytes), from: local!, to: remote!) { peer.bytesDidArrive(bytes, from: self) }
        }
        guard sendingHasEnded, !finIsSent else { return }
        finIsSent = true
        way.send(.fin, from: local!, to: remote!) { peer.finDidArrive(from: self) }
    }

    private func wasAcknowledged(_ count: Int) {
        unacknowledged -= count
        stalledSince = unacknowledged > 0 ? kernel.now : nil
        if lacksRoom && hasMuchRoom && phase == .established {
            lacksRoom = false
            notify(Self.writable)
        }
    }

    private func windowDidOpen(_ count: Int) {
        windowUsed -= count
        pump()
    }

    private func finWasAcknowledged() {
        finIsAcknowledged = true
        if finHasArrived { endAfterBothSides() }
    }

    // MARK: Arriving

    private func bytesDidArrive(_ bytes: ArraySlice<UInt8>, from sender: TCPSocket) {
        if process.isGone { return sender.didReachNobody(host) }
        // Bytes for a socket that reads no more and has sent its end: the kernel answers by a reset.
        if phase != .established || (receivingHasEnded && finIsSent && !finHasArrived) {
            way?.reset(sender, from: self)
            if phase == .established { fail(ECONNRESET) }
            return
        }
        received.append(bytes)
        notify(Self.readable)
        way?.send(nil, from: local!, to: remote!) { sender.wasAcknowledged(bytes.count) }
    }

    private func finDidArrive(from sender: TCPSocket) {
        if process.isGone { return sender.didReachNobody(host) }
        guard phase == .established else { return }
        finHasArrived = true
        receivingHasEnded = true
        way?.send(nil, from: local!, to: remote!) { sender.finWasAcknowledged() }
        if finIsAcknowledged { endAfterBothSides() } else { notify() }
    }

    func resetDidArrive() {
        if process.isGone { return }
        switch phase {
        case .closed, .listening: return
        case .connecting: fail(ECONNREFUSED)
        case .established: fail(finHasArrived && !finIsSent ? EPIPE : ECONNRESET)
        }
    }

    /// Ends the connection by an error, which one call reports.
    private func fail(_ code: CInt) {
        error = code
        endAfterBothSides()
        notify(Self.failed)
    }

    private func endAfterBothSides() {
        phase = .closed
        receivingHasEnded = true
        sendingHasEnded = true
        unsent.removeAll()
        unacknowledged = 0
        host.release(self)
        leavePort()
        notify()
    }

    /// The peer's machine is gone. It stays silent, or does not know the connection after a restart.
    private func didReachNobody(_ host: SimulatedHost.Stack) {
        if host.isUp { return way?.send(.reset, from: remote!, to: local!) { [self] in resetDidArrive() } ?? () }
        host.stranded.append(self)
        giveUpUnlessAcknowledged()
    }

    /// After the time that net.ipv4.tcp_retries2 allows, or TCP_USER_TIMEOUT.
    func giveUpUnlessAcknowledged() {
        guard let since = stalledSince ?? (finIsSent && !finIsAcknowledged ? kernel.now : nil) else { return }
        let limit =
            option(CInt(IPPROTO_TCP), TCP_USER_TIMEOUT).map { Duration.milliseconds(Int64($0)) }
            ?? .milliseconds(924_600)
        kernel.after(limit) { [self] in
            if phase == .established, stalledSince == since || (stalledSince == nil && !finIsAcknowledged && finIsSent)
            {
                fail(ETIMEDOUT)
            }
        }
    }

    /// The peer's machine has vanished, and the socket probes it: SO_KEEPALIVE.
    func probeGonePeer() {
        guard phase == .established, option(SOL_SOCKET, SO_KEEPALIVE) ?? 0 != 0 else { return }
        func value(_ name: CInt, _ usual: CInt) -> Int64 { Int64(option(CInt(IPPROTO_TCP), name) ?? usual) }
        let idle = value(TCP_KEEPIDLE, 7200), rest = value(TCP_KEEPINTVL, 75) * value(TCP_KEEPCNT, 9)
        guard let peer else { return }
        kernel.after(.seconds(idle)) { [self] in
            if phase != .established { return }
            if peer.host.isUp { return resetDidArrive() }
            kernel.after(.seconds(rest)) { [self] in if phase == .established { fail(ETIMEDOUT) } }
        }
    }

    // MARK: Receiving

    override func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if phase == .listening { return -Int(ENOTCONN) }
        if !received.isEmpty && buffer.count > 0 {
            let count = received.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<process.faults.shorten(buffer.count)]))
            reportRoom(count)
            return count
        }
        if buffer.count == 0 && !received.isEmpty { return 0 }
        if finHasArrived { return 0 }
        if error != 0 { return -Int(takeError()) }
        if receivingHasEnded { return 0 }
        return phase == .closed ? -Int(ENOTCONN) : -Int(EAGAIN)
    }

    /// Lets the sender know of the room, at once if it may be waiting for it, otherwise for a part of the buffer.
    private func reportRoom(_ count: Int) {
        guard let peer, phase == .established, let way else { return }
        unreported += count
        let mayWait = received.count + unreported > receiveCapacity / 2
        guard mayWait || unreported >= receiveCapacity / 4 || way.isInstant else { return }
        let room = unreported
        unreported = 0
        way.send(nil, from: local!, to: remote!) { peer.windowDidOpen(room) }
    }

    // MARK: Ending

    override func shutdown(_ how: CInt) -> Int {
        guard (0...2).contains(how) else { return -Int(EINVAL) }
        let (ends, stops) = (how != 1, how != 0)
        switch phase {
        case .listening:
            if ends { stopListening() }
            notify()
            return 0
        case .connecting:
            forgetConnection()
            notify()
            return 0
        case .closed:
            if told == .begun { told = .ended }
            if ends { receivingHasEnded = true }
            if stops { sendingHasEnded = true }
            notify()
            return -Int(ENOTCONN)
        case .established:
            told = .all
            if ends { receivingHasEnded = true }
            if stops {
                sendingHasEnded = true
                pump()
            }
            notify()
            return 0
        }
    }

    private func stopListening() {
        let waiting = backlog!.takeAll()
        backlog = nil
        phase = .closed
        host.listeners[local!.port]?.removeAll { $0 === self }
        host.release(self)
        for child in waiting { child.abandon() }
    }

    /// Ends a connection that no program has accepted.
    private func abandon() {
        guard phase == .established else { return }
        if let peer { way?.reset(peer, from: self) }
        endAfterBothSides()
        peer = nil
    }

    private func leavePort() {
        if !sharesPort { return }
        sharesPort = false
        host.accepted[local!.port]?.remove(ObjectIdentifier(self))
        if host.accepted[local!.port]?.isEmpty == true { host.accepted[local!.port] = nil }
    }

    private func disconnect() {
        leavePort()
        if let peer, phase == .established, !(finIsSent && finHasArrived) { way?.reset(peer, from: self) }
        phase = .closed
        (receivingHasEnded, sendingHasEnded) = (true, true)
        peer = nil
        unsent.removeAll()
    }

    override func close() {
        host.unbind(self)
        switch phase {
        case .listening: stopListening()
        case .connecting, .closed: disconnect()
        case .established:
            let resets = !received.isEmpty || option(SOL_SOCKET, SO_LINGER) ?? 0 != 0
            if resets { return disconnect() }
            receivingHasEnded = true
            sendingHasEnded = true
            pump()
            if let peer, peer.process.isGone { peer.host.stranded.append(self) }
        }
    }

    /// The machine vanishes, and tells nobody.
    func vanish() {
        let other = peer
        phase = .closed
        backlog = nil
        unsent.removeAll()
        other?.probeGonePeer()
        if other?.unacknowledged ?? 0 > 0 { other?.didReachNobody(host) }
    }

    /// A reset in the middle of a stream, as by a router that has lost its table: both ends get it.
    func breakConnection() {
        guard phase == .established else { return }
        let other = peer
        resetDidArrive()
        other?.resetDidArrive()
    }

    /// The link between the ends stays cut for long: what is not acknowledged by then never is.
    func linkWasCut() {
        giveUpUnlessAcknowledged()
        peer?.giveUpUnlessAcknowledged()
    }

    /// The end of the simulation: the two ends refer to each other.
    func forgetPeer() {
        peer?.peer = nil
        peer = nil
        phase = .closed
        backlog = nil
    }

    var isConnected: Bool { phase == .established && peer != nil }
    var remoteHost: SimulatedHost.Stack? { peer?.host }
}

/// The connections that a listening socket has and no program has accepted.
struct AcceptBacklog<Socket> {
    var limit: Int
    private var waiting: [Socket] = []

    init(limit: Int) { self.limit = max(limit, 0) }

    var isEmpty: Bool { waiting.isEmpty }
    /// As in the kernel, one more than the limit has room.
    var isFull: Bool { waiting.count > limit }

    mutating func add(_ socket: Socket) { waiting.append(socket) }
    mutating func take() -> Socket { waiting.removeFirst() }
    mutating func takeAll() -> [Socket] {
        defer { waiting = [] }
        return waiting
    }
}
