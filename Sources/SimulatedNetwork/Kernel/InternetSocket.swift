import CLinux
import ReactorLibc
import Reactor

/// Addresses and ports, common to TCP and UDP sockets.
class InternetSocket: SimulatedSocket {
    var local: SocketAddress?
    var remote: SocketAddress?
    /// True when bind(2) set the port, which then outlives a connection.
    var keepsPort = false
    /// True when bind(2) set the address, which then outlives a connection.
    var keepsAddress = false
    var hasPort = false
    var mayBind: Bool { true }

    override init(_ process: SimulatedProcess, _ family: CInt) {
        super.init(process, family)
        (sendCapacity, receiveCapacity) = (262_144, 131_072)
    }

    // MARK: Addresses

    /// - Parameter takesUnspecified: true if an unspecified address means the loopback, as in connect(2).
    final func parse(
        _ raw: UnsafePointer<sockaddr>, _ length: socklen_t, takesUnspecified: Bool = false
    ) -> SocketAddress? {
        guard let address = SocketAddress(raw, length), address.family == family else { return nil }
        return takesUnspecified && address.isUnspecified ? address.loopbackOfFamily : address
    }

    override func bind(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        if family == AF_INET6 && length < 24 { return -Int(EINVAL) }
        guard var address = parse(raw, length) else { return -Int(EAFNOSUPPORT) }
        if hasPort || !mayBind { return -Int(EINVAL) }
        guard address.isUnspecified || host.owns(address) else { return -Int(EADDRNOTAVAIL) }
        let isChosen = address.port != 0
        if !isChosen { address.port = host.freePort(for: self) ?? 0 }
        if address.port == 0 || (isChosen && host.hasConflict(self, at: address)) {
            local = local.map { .unspecified(family, port: $0.port) }
            return -Int(EADDRINUSE)
        }
        keepsPort = isChosen
        keepsAddress = !address.isUnspecified
        local = address
        host.bound(self)
        return 0
    }

    final func bindToAnyPort() -> Int? {
        guard let port = host.freePort(for: self) else { return -Int(EADDRINUSE) }
        local = keepsAddress ? local!.with(port: port) : .unspecified(family, port: port)
        host.bound(self)
        return nil
    }

    /// Chooses a source address for `target`, and a port.
    final func chooseLocalAddress(for target: SocketAddress) -> Int? {
        guard let source = host.source(for: target) else { return -Int(ENETUNREACH) }
        if !hasPort, let failure = bindToAnyPort() { return failure }
        if local!.isUnspecified { local = source.with(port: local!.port) }
        return nil
    }

    override func localName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        (local ?? SocketAddress.unspecified(family, port: 0)).store(in: name)
        return 0
    }

    override func peerName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        guard let remote, hasPeer else { return -Int(ENOTCONN) }
        remote.store(in: name)
        return 0
    }

    /// True when getpeername(2) has an answer.
    var hasPeer: Bool { remote != nil }
}

extension SocketAddress {
    static func unspecified(_ family: CInt, port: UInt16) -> SocketAddress {
        SocketAddress(host: family == AF_INET6 ? "::" : "0.0.0.0", port: port)!
    }

    var loopbackOfFamily: SocketAddress { SocketAddress(host: isIPv6 ? "::1" : "127.0.0.1", port: port)! }
}
