import ReactorLibc
import Reactor

// The handshake of TCP connections.

extension TCPSocket {
    /// Handles the first segment of `client`, the socket at the other end.
    static func synDidArrive(from client: TCPSocket, at target: SocketAddress, on host: HostStack) {
        let back = client.kernel.way(from: host, to: client.host)
        defer { if back.isHeldUp { client.giveUpLater() } }
        guard let listener = host.listener(at: target) else {
            return back.send(Packet(.reset), from: target, to: client.local!) { client.resetDidArrive() }
        }
        // Treats the segment as lost: the client repeats it.
        if listener.isBacklogFull { return client.repeatSyn() }
        let child = TCPSocket(listener.process, target.family)
        child.local = target
        child.remote = client.local
        child.phase = .established
        child.told = .all
        child.peer = client
        // The effects of a shutdown before listen(2), which the kernel copies too.
        (child.receivingHasEnded, child.sendingHasEnded) = (listener.receivingHasEnded, listener.sendingHasEnded)
        child.inheritOptions(of: listener)
        host.accepted[target.port, default: []].insert(ObjectIdentifier(child))
        child.sharesPort = true
        back.send(Packet(.synAck), from: target, to: client.local!) { client.wasAccepted(by: child, of: listener) }
    }

    func wasAccepted(by child: TCPSocket, of listener: TCPSocket) {
        // A machine that is down does not answer.
        if process.isGone && !host.isUp { return child.endAfterBothSides() }
        // The client has closed, or this answers a repeated segment.
        guard phase == .connecting, peer == nil else { return way?.reset(child, from: self) ?? () }
        phase = .established
        peer = child
        kernel.noteStream(self)
        way!.send(Packet(.ack), from: local!, to: remote!) {
            if child.process.isGone && !child.host.isUp { return child.vanish() }
            child.beAccepted(by: listener)
        }
        notify()
        pump()
    }

    /// Queues the connection for accept(2), if there is room, when the client's acknowledgement has arrived.
    ///
    /// Without room, the kernel ignores that segment (net.ipv4.tcp_abort_on_overflow is 0), and keeps the request. It
    /// checks again when the client sends or repeats bytes, and when the client answers the second segment, which the
    /// kernel repeats after 1, 3, 7, 15 and 31 seconds. After 63 seconds it forgets the request.
    func beAccepted(by listener: TCPSocket) {
        if listener.phase != .listening { return abandon() }
        if listener.takes(self) { return }
        requestAt = listener
        listener.requests.append(self)
        for time in [1, 3, 7, 15, 31] as [Int64] { kernel.after(.seconds(time)) { [self] in requestAgain() } }
        kernel.after(.seconds(63)) { [self] in if requestAt != nil { forgetRequest() } }
    }

    /// Handles another segment from a client whose request found no room. Such a client repeats its first bytes after
    /// 0.2 s, 0.6 s…
    func requestAgain() {
        guard let listener = requestAt, phase == .established, listener.takes(self) else { return }
        requestAt = nil
        listener.requests.removeAll { $0 === self }
    }

    func requestAgainWithBytes() {
        requestAgain()
        if requestAt == nil || !received.isEmpty { return }
        for attempt in 1...6 as ClosedRange<Int64> {
            kernel.after(.milliseconds(200 * ((1 << attempt) - 1))) { [self] in requestAgain() }
        }
    }

    /// Drops a request. No socket exists to notify the client, whose next segment gets a reset.
    func forgetRequest() {
        requestAt?.requests.removeAll { $0 === self }
        requestAt = nil
        if phase == .established { endAfterBothSides() }
    }

    private func takes(_ child: TCPSocket) -> Bool {
        if isBacklogFull { return false }
        backlog.append(child)
        notify(Self.readable)
        return true
    }

    /// Ends an unaccepted connection.
    func abandon() {
        guard phase == .established else { return }
        if let peer { way?.reset(peer, from: self) }
        endAfterBothSides()
        peer = nil
    }

    func sendSyn() {
        let target = remote!
        guard let host = kernel.host(of: target, from: host) else {
            // The link has no such host: the kernel gives up after three seconds.
            return kernel.after(.seconds(3)) { [self] in if phase == .connecting { fail(EHOSTUNREACH) } }
        }
        let way = self.kernel.way(from: self.host, to: host)
        switch way.settings.connects {
        case .normal:
            way.send(Packet(.syn), from: local!, to: target) { [self] in
                if phase != .connecting || peer != nil { return }
                if host.isUp { Self.synDidArrive(from: self, at: target, on: host) } else { repeatSyn() }
            }
        case .refused: way.send(Packet(.syn), from: local!, to: target) { [self] in resetDidArrive() }
        case .unreachable:
            way.send(Packet(.syn), from: local!, to: target) { [self] in if phase == .connecting { fail(EHOSTUNREACH) }
            }
        case .ignored: repeatSyn()
        }
        if way.isHeldUp { giveUpLater() }
    }

    /// Repeats the first segment after 1, 3, 7, … seconds, six times, as with net.ipv4.tcp_syn_retries.
    func repeatSyn() {
        attempts += 1
        let isLast = attempts > 6
        kernel.after(.seconds(Int64(1) << Int64(min(attempts - 1, 6)))) { [self] in
            guard phase == .connecting, peer == nil else { return }
            if isLast { fail(ETIMEDOUT) } else { sendSyn() }
        }
    }

    /// Gives up after 127 s, because the link holds up a handshake segment.
    func giveUpLater() {
        let began = connectBegan
        kernel.at(began + 127_000_000_000) { [self] in
            if phase == .connecting && peer == nil && connectBegan == began { fail(ETIMEDOUT) }
        }
    }

    /// Resets the socket, except bind(2)'s settings.
    func forgetConnection() {
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
}
