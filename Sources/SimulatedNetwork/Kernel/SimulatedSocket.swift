import CLinux
import ReactorLibc

/// The common part of all sockets: socket(7).
class SimulatedSocket: SimulatedFile {
    let family: CInt
    /// The error for the next call or SO_ERROR.
    @exclusivity(unchecked) var error: CInt = 0
    /// The kernel's RCV_SHUTDOWN and SEND_SHUTDOWN.
    @exclusivity(unchecked) var receivingHasEnded = false
    @exclusivity(unchecked) var sendingHasEnded = false
    /// A listening socket's unaccepted connections. As in the kernel, one more than the limit fits.
    final var backlog: [SimulatedSocket] = []
    final var backlogLimit = 0
    final var isBacklogFull: Bool { backlog.count > max(backlogLimit, 0) }

    init(_ process: SimulatedProcess, _ family: CInt) {
        self.family = family
        super.init(process)
    }

    final override var mode: mode_t { S_IFSOCK }
    var type: Int { clinux_SOCK_STREAM }
    var isListening: Bool { false }
    @exclusivity(unchecked) final var sendCapacity = 212_992
    @exclusivity(unchecked) final var receiveCapacity = 212_992
    /// The options that were set. Searching these few is faster than hashing.
    private var options: [(level: CInt, name: CInt, value: CInt)] = []

    final func option(_ level: CInt, _ name: CInt) -> CInt? {
        options.first { $0.level == level && $0.name == name }?.value
    }

    /// True when a switch of SOL_SOCKET is on.
    final func has(_ name: CInt) -> Bool { option(SOL_SOCKET, name) ?? 0 != 0 }

    /// Copies a listener's options to an accepted connection.
    final func inheritOptions(of listener: SimulatedSocket) {
        options = listener.options
        (sendCapacity, receiveCapacity) = (listener.sendCapacity, listener.receiveCapacity)
    }

    /// Returns the error for an option that this socket lacks; see the kernel's sk_setsockopt and tcp_setsockopt.
    private func refusal(_ level: CInt, _ name: CInt, isSet: Bool) -> CInt? {
        let names: ClosedRange<CInt>
        switch level {
        case SOL_SOCKET: names = 1...83
        case _ where family == AF_UNIX: return EOPNOTSUPP
        case CInt(IPPROTO_TCP) where type == clinux_SOCK_STREAM: names = 1...45
        case CInt(IPPROTO_IP): names = 1...52
        case CInt(IPPROTO_IPV6) where family == AF_INET6: names = 1...80
        default: return isSet || family == AF_INET6 ? ENOPROTOOPT : EOPNOTSUPP
        }
        let areReadOnly = [SO_ERROR, SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ACCEPTCONN]
        let isReadOnly = level == SOL_SOCKET && areReadOnly.contains(name)
        return names.contains(name) && !(isSet && isReadOnly) ? nil : ENOPROTOOPT
    }

    final override func setOption(_ level: CInt, _ name: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
        if level != SOL_SOCKET, let refusal = refusal(level, name, isSet: true) { return -Int(refusal) }
        guard bytes.count >= MemoryLayout<CInt>.size else { return -Int(EINVAL) }
        if let refusal = refusal(level, name, isSet: true) { return -Int(refusal) }
        // The first word is the value; for SO_LINGER it says whether lingering is on. The library lingers only for zero
        // seconds.
        let value = bytes.loadUnaligned(as: CInt.self)
        // Refused since Linux 6.13 and its backports.
        if level == SOL_SOCKET, name == SO_REUSEPORT, value != 0, family == AF_UNIX { return -Int(EOPNOTSUPP) }
        options.removeAll { $0.level == level && $0.name == name }
        options.append((level, name, value))
        // The kernel doubles a program's value.
        if level == SOL_SOCKET, name == SO_SNDBUF { sendCapacity = max(Int(value), 2304) * 2 }
        if level == SOL_SOCKET, name == SO_RCVBUF { receiveCapacity = max(Int(value), 1152) * 2 }
        return 0
    }

    final override func getOption(_ level: CInt, _ name: CInt, _ value: UnsafeMutablePointer<CInt>) -> Int {
        if let refusal = refusal(level, name, isSet: false) { return -Int(refusal) }
        value.pointee = (level == SOL_SOCKET ? computedOption(name) : nil) ?? option(level, name) ?? 0
        return 0
    }

    private func computedOption(_ name: CInt) -> CInt? {
        switch name {
        case SO_ERROR: takeError()
        case SO_TYPE: CInt(type)
        case SO_DOMAIN: family
        case SO_PROTOCOL: family == AF_UNIX ? 0 : CInt(type == clinux_SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)
        case SO_ACCEPTCONN: isListening ? 1 : 0
        case SO_SNDBUF: CInt(sendCapacity)
        case SO_RCVBUF: CInt(receiveCapacity)
        default: nil
        }
    }

    /// accept(2).
    final func acceptOldest(_ name: (SimulatedSocket) -> Void) -> Int {
        guard isListening else { return -Int(EINVAL) }
        if backlog.isEmpty { return -Int(EAGAIN) }
        guard process.hasRoomForFile else { return -Int(EMFILE) }
        let child = backlog.removeFirst()
        name(child)
        return Int(process.open(child))
    }

    final func takeError() -> CInt {
        defer { error = 0 }
        return error
    }

    /// Applies shutdown(2) to this side.
    final func endSides(_ how: CInt) {
        if how != 1 { receivingHasEnded = true }
        if how != 0 { sendingHasEnded = true }
    }

    /// The events for errors and shutdowns.
    final var endReadiness: UInt32 {
        (error != 0 ? Self.failed : 0)
            | (receivingHasEnded ? Self.readable | Self.readEnded : 0)
            | (receivingHasEnded && sendingHasEnded ? Self.hungUp : 0)
    }
}

extension UnsafeBufferPointer<iovec> {
    var byteCount: Int { reduce(0) { $0 + $1.iov_len } }

    func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            for piece in self where filled < count {
                let part = Swift.min(piece.iov_len, count - filled)
                if part > 0 { memcpy(buffer.baseAddress! + filled, piece.iov_base, part) }
                filled += part
            }
        }
    }
}
