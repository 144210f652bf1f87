import ReactorLibc
import Reactor

// The end of TCP connections, and the detection of a vanished peer.

extension TCPSocket {
    func resetDidArrive() {
        if process.isGone { return }
        switch phase {
        case .closed, .listening: return
        case .connecting: fail(ECONNREFUSED)
        case .established: fail(finHasArrived && !finIsSent ? EPIPE : ECONNRESET)
        }
    }

    /// Ends the connection with an error for one call.
    func fail(_ code: CInt) {
        error = code
        endAfterBothSides()
        notify(Self.failed)
    }

    func endAfterBothSides() {
        phase = .closed
        receivingHasEnded = true
        sendingHasEnded = true
        unsent.removeAll()
        unacknowledged = 0
        host.release(self)
        leavePort()
        // A reset also ends a request.
        if requestAt != nil { forgetRequest() }
        notify()
    }

    func leavePort() {
        if !sharesPort { return }
        sharesPort = false
        host.accepted[local!.port]?.remove(ObjectIdentifier(self))
        if host.accepted[local!.port]?.isEmpty == true { host.accepted[local!.port] = nil }
    }

    func stopListening() {
        let waiting = backlog
        backlog = []
        phase = .closed
        host.listeners[local!.port]?.removeAll { $0 === self }
        host.release(self)
        for child in waiting { (child as! TCPSocket).abandon() }
        for child in requests { child.forgetRequest() }
    }

    func disconnect() {
        leavePort()
        if let peer, phase == .established, !(finIsSent && finHasArrived) { way?.reset(peer, from: self) }
        phase = .closed
        (receivingHasEnded, sendingHasEnded) = (true, true)
        peer = nil
        unsent.removeAll()
    }

    /// Handles data for a machine that is down and silent, or has restarted and does not know the connection.
    func didReachNobody(_ host: HostStack) {
        if host.isUp {
            return way?.send(Packet(.reset), from: remote!, to: local!) { [self] in resetDidArrive() } ?? ()
        }
        host.stranded.append(self)
        giveUpUnlessAcknowledged()
    }

    /// Fails the connection if nothing is acknowledged within TCP_USER_TIMEOUT, or else the time of
    /// net.ipv4.tcp_retries2.
    func giveUpUnlessAcknowledged() {
        guard let since = isStalledSince else { return }
        let limit =
            option(CInt(IPPROTO_TCP), TCP_USER_TIMEOUT).map { Duration.milliseconds(Int64($0)) }
            ?? .milliseconds(924_600)
        kernel.after(limit) { [self] in if phase == .established, isStalledSince == since { fail(ETIMEDOUT) } }
    }

    /// Probes a peer whose machine has vanished: SO_KEEPALIVE.
    func probeGonePeer() {
        guard phase == .established, has(SO_KEEPALIVE) else { return }
        func value(_ name: CInt, _ usual: CInt) -> Int64 { Int64(option(CInt(IPPROTO_TCP), name) ?? usual) }
        let idle = value(TCP_KEEPIDLE, 7200), rest = value(TCP_KEEPINTVL, 75) * value(TCP_KEEPCNT, 9)
        guard let peer else { return }
        kernel.after(.seconds(idle)) { [self] in
            if phase != .established { return }
            if peer.host.isUp { return resetDidArrive() }
            kernel.after(.seconds(rest)) { [self] in if phase == .established { fail(ETIMEDOUT) } }
        }
    }

    /// Drops the connection without notice, because the machine vanishes.
    func vanish() {
        let other = peer
        phase = .closed
        for child in backlog { (child as! TCPSocket).vanish() }
        for child in requests { child.vanish() }
        (backlog, requests, requestAt) = ([], [], nil)
        unsent.removeAll()
        other?.probeGonePeer()
        if other?.unacknowledged ?? 0 > 0 { other?.didReachNobody(host) }
    }

    /// Resets both ends mid-stream, like a router that lost its table.
    func breakConnection() {
        guard phase == .established else { return }
        let other = peer
        resetDidArrive()
        other?.resetDidArrive()
    }

    /// Starts both ends' time limits for unacknowledged data, since the link was cut.
    func linkWasCut() {
        giveUpUnlessAcknowledged()
        peer?.giveUpUnlessAcknowledged()
    }

    /// Breaks the reference cycle between both ends when the simulation ends.
    func forgetPeer() {
        peer?.peer = nil
        peer = nil
        phase = .closed
        (backlog, requests, requestAt) = ([], [], nil)
    }

    var isConnected: Bool { phase == .established && peer != nil }
    var remoteHost: HostStack? { peer?.host }
}
