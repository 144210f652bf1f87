import ReactorLibc
import Reactor

// The transport of a connection's bytes and ends: segments, acknowledgements and the window.

extension TCPSocket {
    /// Sends as much as the peer's window allows.
    func pump() {
        guard let peer, let way, phase == .established else { return }
        let wasStalled = isStalledSince != nil
        defer { if way.isHeldUp && !wasStalled { giveUpUnlessAcknowledged() } }
        while !unsent.isEmpty {
            let room = peer.receiveCapacity - windowUsed
            if room <= 0 { return }
            let bytes = unsent.takePiece(upTo: min(way.nextSegment(), room))
            if unacknowledged == 0 { bytesStalledSince = kernel.now }
            unacknowledged += bytes.count
            windowUsed += bytes.count
            way.send(Packet(.data, bytes), from: local!, to: remote!) { peer.bytesDidArrive(bytes, from: self) }
        }
        guard sendingHasEnded, !finIsSent else { return }
        finSentAt = kernel.now
        way.send(Packet(.fin), from: local!, to: remote!) { peer.finDidArrive(from: self) }
    }

    func wasAcknowledged(_ count: Int) {
        unacknowledged -= count
        bytesStalledSince = unacknowledged > 0 ? kernel.now : nil
        // The rest does not arrive, so its time limit restarts.
        if isStalledSince != nil, way?.isHeldUp == true { giveUpUnlessAcknowledged() }
        if lacksRoom && hasMuchRoom && phase == .established {
            lacksRoom = false
            notify(Self.writable)
        }
    }

    func windowDidOpen(_ count: Int) {
        windowUsed -= count
        pump()
    }

    func finWasAcknowledged() {
        finIsAcknowledged = true
        if finHasArrived { endAfterBothSides() }
    }

    func bytesDidArrive(_ bytes: ArraySlice<UInt8>, from sender: TCPSocket) {
        if process.isGone { return sender.didReachNobody(host) }
        // For a socket that no longer reads and has sent its FIN, the kernel answers bytes with a reset.
        if phase != .established || (receivingHasEnded && finIsSent && !finHasArrived) {
            way?.reset(sender, from: self)
            if phase == .established { fail(ECONNRESET) }
            return
        }
        if requestAt != nil { requestAgainWithBytes() }
        received.append(bytes)
        notify(Self.readable)
        way?.send(nil, from: local!, to: remote!) { sender.wasAcknowledged(bytes.count) }
    }

    func finDidArrive(from sender: TCPSocket) {
        if process.isGone { return sender.didReachNobody(host) }
        guard phase == .established else { return }
        finHasArrived = true
        receivingHasEnded = true
        way?.send(nil, from: local!, to: remote!) { sender.finWasAcknowledged() }
        if finIsAcknowledged { endAfterBothSides() } else { notify() }
    }

    /// Reports free room to the sender: at once if it may be waiting, or else after a quarter of the buffer.
    func reportRoom(_ count: Int) {
        guard let peer, phase == .established, let way else { return }
        unreported += count
        let mayWait = received.count + unreported > receiveCapacity / 2
        guard mayWait || unreported >= receiveCapacity / 4 || way.isInstant else { return }
        let room = unreported
        unreported = 0
        way.send(nil, from: local!, to: remote!) { peer.windowDidOpen(room) }
    }
}
