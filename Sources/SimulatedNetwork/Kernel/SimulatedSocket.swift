import CLinux
import Glibc

/// The common part of all sockets: socket(7).
class SimulatedSocket: SimulatedFile {
    let family: CInt
    /// The error that the next call reports, or SO_ERROR.
    var error: CInt = 0
    /// RCV_SHUTDOWN and SEND_SHUTDOWN of the kernel.
    var receivingHasEnded = false
    var sendingHasEnded = false

    init(_ process: SimulatedProcess, _ family: CInt) {
        self.family = family
        super.init(process)
    }

    final override var mode: mode_t { S_IFSOCK }
    var type: Int { clinux_SOCK_STREAM }
    var isListening: Bool { false }
    var usualCapacities: (send: Int, receive: Int) { (212_992, 212_992) }
    final var sendCapacity: Int { capacity(SO_SNDBUF, least: 2304) ?? usualCapacities.send }
    final var receiveCapacity: Int { capacity(SO_RCVBUF, least: 1152) ?? usualCapacities.receive }

    /// The kernel doubles a program's value.
    private func capacity(_ name: CInt, least: Int) -> Int? { option(SOL_SOCKET, name).map { max(Int($0), least) * 2 } }

    final override func computedOption(_ level: CInt, _ name: CInt) -> CInt? {
        guard level == SOL_SOCKET else { return nil }
        return switch name {
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

    final func takeError() -> CInt {
        defer { error = 0 }
        return error
    }

    /// The effect of shutdown(2) on this side.
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

    /// The first `count` bytes.
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
