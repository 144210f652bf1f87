import ReactorLibc
import Reactor

/// A machine's kernel state apart from processes: addresses, ports, Unix paths.
final class HostStack {
    unowned let network: SimulatedKernel
    let name: String
    /// The addresses, with port 0.
    let addresses: [SocketAddress]
    var isUp = true
    var listeners: [UInt16: [TCPSocket]] = [:]
    /// Sockets with a port, except accepted connections.
    private var taken: [Int: [InternetSocket]] = [:]
    /// Accepted connections by port. They prevent binding the port without SO_REUSEADDR.
    var accepted: [UInt16: Set<ObjectIdentifier>] = [:]
    var nodes: [String: SimulatedNode] = [:]
    var abstractNames: [SocketAddress: UnixStream] = [:]
    /// Other hosts' sockets with data that this machine, being down, has not acknowledged.
    var stranded: [TCPSocket] = []
    private var nextPort: UInt16 = 32_768

    init(_ name: String, _ addresses: [SocketAddress], _ network: SimulatedKernel) {
        self.name = name
        self.addresses = addresses.map { $0.with(port: 0) }
        self.network = network
        network.add(self)
    }

    // MARK: Addresses

    func owns(_ address: SocketAddress) -> Bool {
        address.isLoopback || addresses.contains(address.with(port: 0))
    }

    func source(for target: SocketAddress) -> SocketAddress? {
        if target.isLoopback { return target.loopbackOfFamily.with(port: 0) }
        if owns(target) { return target.with(port: 0) }
        return addresses.first { $0.isIPv6 == target.isIPv6 }
    }

    // MARK: Ports

    private static func key(_ socket: InternetSocket, _ port: UInt16) -> Int { socket.type << 16 | Int(port) }

    func bound(_ socket: InternetSocket) {
        socket.hasPort = true
        taken[Self.key(socket, socket.local!.port), default: []].append(socket)
    }

    func unbind(_ socket: InternetSocket) {
        guard socket.hasPort, let port = socket.local?.port else { return }
        socket.hasPort = false
        let key = Self.key(socket, port)
        taken[key]?.removeAll { $0 === socket }
        if taken[key]?.isEmpty == true { taken[key] = nil }
    }

    /// Frees a socket's port when its connection ends, unless bind(2) set the port.
    func release(_ socket: InternetSocket) { if !socket.keepsPort { unbind(socket) } }

    func freePort(for socket: InternetSocket) -> UInt16? {
        for _ in 32_768...60_999 {
            let port = nextPort
            nextPort = nextPort == 60_999 ? 32_768 : nextPort + 1
            if taken[Self.key(socket, port)] == nil { return port }
        }
        return nil
    }

    /// True when the kernel refuses `address` with EADDRINUSE: see SO_REUSEADDR and SO_REUSEPORT in socket(7).
    func hasConflict(_ socket: InternetSocket, at address: SocketAddress) -> Bool {
        if socket is TCPSocket, accepted[address.port] != nil, !socket.has(SO_REUSEADDR), !socket.has(SO_REUSEPORT) {
            return true
        }
        return (taken[Self.key(socket, address.port)] ?? []).contains { other in
            let present = other.local!
            // The library makes each IPv6 socket refuse IPv4.
            if other === socket || address.isIPv6 != present.isIPv6 { return false }
            let overlap =
                address.isUnspecified || present.isUnspecified || address.with(port: 0) == present.with(port: 0)
            if !overlap || (socket.has(SO_REUSEPORT) && other.has(SO_REUSEPORT)) { return false }
            return !(socket.has(SO_REUSEADDR) && other.has(SO_REUSEADDR)) || other.isListening
        }
    }

    func listener(at target: SocketAddress) -> TCPSocket? {
        guard let all = listeners[target.port] else { return nil }
        let exact = all.filter { $0.local == target }
        let fitting = exact.isEmpty ? all.filter { $0.local!.isUnspecified && $0.family == target.family } : exact
        // SO_REUSEPORT: the kernel chooses by a hash of the addresses.
        return fitting.count > 1 ? fitting[network.random.number(below: fitting.count)] : fitting.first
    }

    func datagramSocket(at target: SocketAddress, from sender: SocketAddress) -> UDPSocket? {
        let key = Int(CInt(2)) << 16 | Int(target.port)
        var best: UDPSocket?
        for case let socket as UDPSocket in taken[key] ?? [] where socket.takes(target, from: sender) {
            if best.map({ $0.precision < socket.precision }) ?? true { best = socket }
        }
        return best
    }

    // MARK: Paths

    func makeNode(_ path: String, _ mode: mode_t) -> SimulatedNode? {
        guard nodes[path] == nil else { return nil }
        let node = SimulatedNode(network.makeNodeNumber(), mode)
        nodes[path] = node
        return node
    }

    /// Drops the state of the machine's processes. Files stay.
    func lose() {
        isUp = false
        listeners = [:]
        accepted = [:]
        taken = [:]
        abstractNames = [:]
    }
}
