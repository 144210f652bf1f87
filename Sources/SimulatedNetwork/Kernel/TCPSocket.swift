import ReactorLibc
import Reactor

/// A simulated TCP socket. Its observable behaviour follows tcp(7) and the kernel's code. Segments are closures that
/// run at the other socket after the link's latency.
final class TCPSocket: InternetSocket {
    enum Phase {
        /// Not yet, or no longer, connected.
        case closed
        case listening
        case connecting
        case established
    }

    /// The part of the connection that connect(2) has reported: the kernel's SS_UNCONNECTED, SS_CONNECTING,
    /// SS_CONNECTED.
    enum Told { case nothing, begun, all, ended }
    @exclusivity(unchecked) var phase = Phase.closed
    var told = Told.nothing
    @exclusivity(unchecked) var received = ByteQueue()
    var finHasArrived = false
    /// The number of bytes read since the last report of room to the sender.
    var unreported = 0
    @exclusivity(unchecked) var unsent = ByteQueue()
    var finSentAt: Int64?
    var finIsAcknowledged = false
    @exclusivity(unchecked) var unacknowledged = 0
    /// The used part of the peer's receive buffer, as this side knows it.
    @exclusivity(unchecked) var windowUsed = 0
    @exclusivity(unchecked) var lacksRoom = false
    /// The time since which the oldest bytes are unacknowledged.
    var bytesStalledSince: Int64?
    @exclusivity(unchecked) var peer: TCPSocket?
    var attempts = 0
    private(set) var connectBegan: Int64 = 0
    /// True for an accepted connection, on its listener's port.
    var sharesPort = false
    /// A listening socket's clients that connected while the backlog was full.
    var requests: [TCPSocket] = []
    /// The listening socket of such a client's connection.
    var requestAt: TCPSocket?
    /// The way to the peer, cached because each packet needs it.
    lazy var way = remote.flatMap { kernel.host(of: $0, from: host) }.map { kernel.way(from: host, to: $0) }
    override var isListening: Bool { phase == .listening }
    override var mayBind: Bool { phase == .closed }
    override var hasPeer: Bool { phase == .established }

    override var readiness: UInt32 {
        if phase == .listening { return backlog.isEmpty ? 0 : Self.readable }
        var ready = endReadiness | (phase == .closed ? Self.hungUp : 0)
        if phase == .connecting { return ready }
        if !received.isEmpty { ready |= Self.readable }
        if sendingHasEnded || hasMuchRoom {
            ready |= Self.writable
        } else {
            lacksRoom = true
        }
        return ready
    }

    var finIsSent: Bool { finSentAt != nil }
    /// The time since which the last output is unacknowledged.
    var isStalledSince: Int64? { bytesStalledSince ?? (finIsAcknowledged ? nil : finSentAt) }
    var queued: Int { unsent.count + unacknowledged }
    /// True when a third of the buffer is free: writable, as in the kernel.
    var hasMuchRoom: Bool { queued * 3 <= sendCapacity * 2 }

    override var waiting: (incoming: Int, outgoing: Int) {
        if phase == .listening { return (-Int(EINVAL), -Int(EINVAL)) }
        return (received.count, queued + (finIsSent && !finIsAcknowledged ? 1 : 0))
    }

    override func listen(_ backlog: Int) -> Int {
        if told != .nothing { return -Int(EINVAL) }
        switch phase {
        case .listening: backlogLimit = backlog
        case .closed:
            if !hasPort, let failure = bindToAnyPort() { return failure }
            if host.hasConflict(self, at: local!) { return -Int(EADDRINUSE) }
            backlogLimit = backlog
            phase = .listening
            host.listeners[local!.port, default: []].append(self)
            notify()
        case .connecting, .established: return -Int(EINVAL)
        }
        return 0
    }

    override func accept(_ peer: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        acceptOldest { ($0 as! TCPSocket).remote?.store(in: peer) }
    }

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
            // Reports the failed attempt before another may begin.
            let code = takeError()
            forgetConnection()
            return -Int(code != 0 ? code : ECONNABORTED)
        case .nothing: if phase != .closed { return -Int(EISCONN) }
        }
        if family == AF_INET6 && length < 24 { return -Int(EINVAL) }
        guard let target = parse(raw, length, takesUnspecified: true) else { return -Int(EAFNOSUPPORT) }
        if let failure = chooseLocalAddress(for: target) { return failure }
        remote = target
        way = kernel.host(of: target, from: host).map { kernel.way(from: host, to: $0) }
        phase = .connecting
        told = .begun
        (finHasArrived, finSentAt, finIsAcknowledged) = (false, nil, false)
        error = 0
        attempts = 0
        connectBegan = kernel.now
        sendSyn()
        return -Int(EINPROGRESS)
    }

    override func send(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        if error != 0 { return -Int(takeError()) }
        if phase == .connecting { return -Int(EAGAIN) }
        if phase != .established || sendingHasEnded { return -Int(EPIPE) }
        let total = pieces.byteCount
        if total == 0 { return 0 }
        let count = min(process.faults.shorten(total), sendCapacity - queued)
        if count <= 0 {
            lacksRoom = true
            return -Int(EAGAIN)
        }
        unsent.append(pieces.bytes(count)[...])
        pump()
        return count
    }

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

    override func shutdown(_ how: CInt) -> Int {
        guard (0...2).contains(how) else { return -Int(EINVAL) }
        switch phase {
        case .listening:
            if how != 1 { stopListening() }
            notify()
            return 0
        case .connecting:
            forgetConnection()
            notify()
            return 0
        case .closed:
            if told == .begun { told = .ended }
            endSides(how)
            notify()
            return -Int(ENOTCONN)
        case .established:
            told = .all
            endSides(how)
            if how != 0 { pump() }
            notify()
            return 0
        }
    }

    override func close() {
        host.unbind(self)
        switch phase {
        case .listening: stopListening()
        case .connecting, .closed: disconnect()
        case .established:
            if !received.isEmpty || has(SO_LINGER) { return disconnect() }
            receivingHasEnded = true
            sendingHasEnded = true
            pump()
            if let peer, peer.process.isGone { peer.host.stranded.append(self) }
        }
    }
}
