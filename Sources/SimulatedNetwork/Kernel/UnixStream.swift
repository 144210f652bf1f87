import CLinux
import ReactorLibc
import Reactor

/// A simulated AF_UNIX stream socket: unix(7). Both ends are on one machine, and bytes arrive at once.
final class UnixStream: SimulatedSocket {
    private enum Phase { case closed, listening, connected }

    private var phase = Phase.closed
    private var name: SocketAddress?
    private var received = ByteQueue()
    private var peer: UnixStream?
    private var isDead = false

    init(_ process: SimulatedProcess) { super.init(process, AF_UNIX) }

    override var isListening: Bool { phase == .listening }
    private var isWritable: Bool { phase != .listening && (peer.map { $0.received.count * 4 <= sendCapacity } ?? true) }

    override var readiness: UInt32 {
        var ready = endReadiness
        if phase == .listening ? !backlog.isEmpty : !received.isEmpty { ready |= Self.readable }
        if phase == .closed { ready |= Self.hungUp }
        if isWritable { ready |= Self.writable }
        return ready
    }

    override var waiting: (incoming: Int, outgoing: Int) {
        phase == .listening ? (-Int(EINVAL), 0) : (received.count, peer?.received.count ?? 0)
    }

    /// socketpair(2).
    static func pair(_ process: SimulatedProcess) -> (UnixStream, UnixStream) {
        let (first, second) = (UnixStream(process), UnixStream(process))
        first.join(second)
        return (first, second)
    }

    private func join(_ other: UnixStream) {
        (phase, other.phase) = (.connected, .connected)
        (peer, other.peer) = (other, self)
    }

    // MARK: Connecting

    override func bind(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        guard let address = SocketAddress(raw, length), address.isUnix else { return -Int(EINVAL) }
        if name != nil { return -Int(EINVAL) }
        if let path = address.unixPath {
            guard let node = host.makeNode(path, S_IFSOCK | 0o755) else { return -Int(EADDRINUSE) }
            node.socket = self
        } else {
            if host.abstractNames[address]?.isDead == false { return -Int(EADDRINUSE) }
            host.abstractNames[address] = self
        }
        name = address
        return 0
    }

    override func listen(_ backlog: Int) -> Int {
        if name == nil || phase == .connected { return -Int(EINVAL) }
        phase = .listening
        backlogLimit = backlog
        return 0
    }

    override func connect(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        guard let address = SocketAddress(raw, length), address.isUnix else { return -Int(EINVAL) }
        let other: UnixStream?
        if let path = address.unixPath {
            guard let node = host.nodes[path] else { return -Int(ENOENT) }
            other = node.socket
        } else {
            other = host.abstractNames[address]
        }
        guard let other, !other.isDead, other.phase == .listening, !other.receivingHasEnded else {
            return -Int(ECONNREFUSED)
        }
        if other.isBacklogFull { return -Int(EAGAIN) }
        if phase == .connected { return -Int(EISCONN) }
        if phase == .listening { return -Int(EINVAL) }
        let child = UnixStream(other.process)
        child.name = other.name
        join(child)
        other.backlog.append(child)
        other.notify(Self.readable)
        return 0
    }

    override func accept(_ peer: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        acceptOldest { (($0 as! UnixStream).peer?.name).storeUnix(in: peer) }
    }

    override func localName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        self.name.storeUnix(in: name)
        return 0
    }

    override func peerName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        guard let peer else { return -Int(ENOTCONN) }
        peer.name.storeUnix(in: name)
        return 0
    }

    // MARK: Bytes

    override func send(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        guard phase == .connected else { return -Int(ENOTCONN) }
        if sendingHasEnded { return -Int(EPIPE) }
        guard let peer else { return -Int(ENOTCONN) }
        let total = pieces.byteCount
        if total == 0 { return 0 }
        if error != 0 { return -Int(takeError()) }
        if peer.isDead || peer.receivingHasEnded { return -Int(EPIPE) }
        let count = min(process.faults.shorten(total), sendCapacity - peer.received.count)
        if count <= 0 { return -Int(EAGAIN) }
        peer.received.append(pieces.bytes(count)[...])
        peer.notify(Self.readable)
        return count
    }

    override func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard phase == .connected else { return -Int(EINVAL) }
        if !received.isEmpty {
            let wasWritable = peer?.isWritable ?? true
            let count = received.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<process.faults.shorten(buffer.count)]))
            if !wasWritable || peer?.isWritable == true { peer?.notify(Self.writable) }
            return count
        }
        if error != 0 { return -Int(takeError()) }
        return receivingHasEnded ? 0 : -Int(EAGAIN)
    }

    // MARK: Ending

    override func shutdown(_ how: CInt) -> Int {
        guard (0...2).contains(how) else { return -Int(EINVAL) }
        endSides(how)
        notify()
        if let peer {
            if how != 1 { peer.sendingHasEnded = true }
            if how != 0 { peer.receivingHasEnded = true }
            peer.notify()
        }
        return 0
    }

    override func close() { release(isEmbryo: false) }

    private func release(isEmbryo: Bool) {
        isDead = true
        if let name, name.unixPath == nil, host.abstractNames[name] === self { host.abstractNames[name] = nil }
        for child in backlog { (child as! UnixStream).release(isEmbryo: true) }
        backlog = []
        guard let peer else { return }
        peer.receivingHasEnded = true
        peer.sendingHasEnded = true
        if !received.isEmpty || isEmbryo { peer.error = ECONNRESET }
        peer.notify()
        received.removeAll()
        self.peer = nil
    }
}

extension SocketAddress? {
    /// Stores an address. The address of an unnamed Unix socket has only a family.
    func storeUnix(in storage: UnsafeMutablePointer<sockaddr_storage>) {
        guard let self else {
            storage.pointee = sockaddr_storage()
            storage.pointee.ss_family = sa_family_t(AF_UNIX)
            return
        }
        self.store(in: storage)
    }
}
