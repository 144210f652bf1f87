import CLinux
import ReactorLibc
import Reactor

/// A simulated UDP socket: udp(7).
final class UDPSocket: InternetSocket {
    private var received: [(bytes: [UInt8], sender: SocketAddress)] = []
    private var receivedBytes = 0

    override var type: Int { clinux_SOCK_DGRAM }

    override var readiness: UInt32 { Self.writable | endReadiness | (received.isEmpty ? 0 : Self.readable) }

    override var waiting: (incoming: Int, outgoing: Int) { (received.first?.bytes.count ?? 0, 0) }

    override func listen(_ backlog: Int) -> Int { -Int(EOPNOTSUPP) }
    override func accept(_ peer: UnsafeMutablePointer<sockaddr_storage>) -> Int { -Int(EOPNOTSUPP) }

    override func connect(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        guard let target = parse(raw, length, takesUnspecified: true) else { return -Int(EAFNOSUPPORT) }
        if let failure = chooseLocalAddress(for: target) { return failure }
        remote = target
        return 0
    }

    override func shutdown(_ how: CInt) -> Int {
        guard (0...2).contains(how) else { return -Int(EINVAL) }
        endSides(how)
        notify()
        return hasPeer ? 0 : -Int(ENOTCONN)
    }

    // MARK: Sending

    override func send(_ pieces: UnsafeBufferPointer<iovec>) -> Int { sendOne(pieces, to: nil) }

    override func sendMessages(_ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int {
        for index in 0..<count {
            let header = messages[index].header
            var target: SocketAddress?
            if let name = header.msg_name {
                target = parse(name.assumingMemoryBound(to: sockaddr.self), header.msg_namelen, takesUnspecified: true)
                if target == nil { return index > 0 ? index : -Int(EAFNOSUPPORT) }
            }
            let result = sendOne(UnsafeBufferPointer(start: header.msg_iov, count: Int(header.msg_iovlen)), to: target)
            if result < 0 { return index > 0 ? index : result }
            messages[index].count = CUnsignedInt(result)
        }
        return count
    }

    private func sendOne(_ pieces: UnsafeBufferPointer<iovec>, to target: SocketAddress?) -> Int {
        let count = pieces.byteCount
        if !hasPort, let failure = bindToAnyPort() { return failure }
        if count > (family == AF_INET6 ? 65_527 : 65_507) { return -Int(EMSGSIZE) }
        guard let target = target ?? remote else { return -Int(EDESTADDRREQ) }
        if target.port == 0 { return -Int(EINVAL) }
        guard let own = host.source(for: target) else { return -Int(ENETUNREACH) }
        // Reports an earlier datagram's error.
        if error != 0 { return -Int(takeError()) }
        if sendingHasEnded { return -Int(EPIPE) }
        let sender = local!.isUnspecified ? own.with(port: local!.port) : local!
        guard let other = host.network.host(of: target, from: host) else { return count }
        let bytes = pieces.bytes(count)
        let way = host.network.way(from: host, to: other)
        way.sendDatagram(bytes, from: sender, to: target) { [self] in
            guard other.isUp else { return }
            if let socket = other.datagramSocket(at: target, from: sender) {
                return socket.deliver(bytes, from: sender)
            }
            // The ICMP message "port unreachable", which only a connected socket receives.
            host.network.way(from: other, to: host).sendDatagram(nil, from: target, to: sender) { [self] in
                guard remote == target, number >= 0 else { return }
                error = ECONNREFUSED
                notify(Self.failed)
            }
        }
        return count
    }

    // MARK: Receiving

    func takes(_ target: SocketAddress, from sender: SocketAddress) -> Bool {
        guard let local, local.port == target.port, local.isUnspecified || local == target else { return false }
        return !hasPeer || remote == sender
    }

    /// The precision of the match: a connected socket wins, then one bound to the address.
    var precision: Int { (hasPeer ? 2 : 0) + (local?.isUnspecified == false ? 1 : 0) }

    private func deliver(_ bytes: [UInt8], from sender: SocketAddress) {
        // Beyond the buffer, datagrams are lost silently.
        guard receivedBytes + bytes.count <= receiveCapacity * 2, number >= 0 else { return }
        received.append((bytes, sender))
        receivedBytes += bytes.count
        notify(Self.readable)
    }

    override func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let (bytes, _) = takeNext() else { return emptyResult }
        let count = min(bytes.count, buffer.count)
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return count
    }

    override func receiveMessages(_ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int {
        var filled = 0
        while filled < count, error == 0, let (bytes, sender) = takeNext() {
            let piece = messages[filled].header.msg_iov[0]
            let copied = min(bytes.count, piece.iov_len)
            if copied > 0 { _ = bytes.withUnsafeBytes { memcpy(piece.iov_base, $0.baseAddress!, copied) } }
            messages[filled].count = CUnsignedInt(copied)
            messages[filled].header.msg_flags = bytes.count > copied ? CInt(MSG_TRUNC) : 0
            if let name = messages[filled].header.msg_name {
                sender.store(in: name.assumingMemoryBound(to: sockaddr_storage.self))
            }
            filled += 1
        }
        return filled > 0 ? filled : emptyResult
    }

    private func takeNext() -> (bytes: [UInt8], sender: SocketAddress)? {
        if received.isEmpty || error != 0 { return nil }
        let next = received.removeFirst()
        receivedBytes -= next.bytes.count
        return next
    }

    private var emptyResult: Int {
        // A non-blocking call has nothing to report, even after a shutdown of reading.
        error != 0 ? -Int(takeError()) : -Int(EAGAIN)
    }

    override func close() { host.unbind(self) }
}
