import CLinux
import ReactorLibc

extension SocketAddress {
    package var family: CInt {
        switch host {
        case .v4: AF_INET
        case .v6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    package func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        switch host {
        case .v4(let address):
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            raw.sin_addr.s_addr = address
            return Self.with(&raw, MemoryLayout<sockaddr_in>.size, body)
        case .v6(let high, let low, let scope):
            var raw = sockaddr_in6()
            raw.sin6_family = sa_family_t(AF_INET6)
            raw.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &raw.sin6_addr) {
                $0.storeBytes(of: high, as: UInt64.self)
                $0.storeBytes(of: low, toByteOffset: 8, as: UInt64.self)
            }
            raw.sin6_scope_id = scope
            return Self.with(&raw, MemoryLayout<sockaddr_in6>.size, body)
        case .unix(let name):
            var raw = sockaddr_un()
            raw.sun_family = sa_family_t(AF_UNIX)
            let start = Self.startOfPath + (name.isAbstract ? 1 : 0)
            // At most 107 bytes; one remains for a zero before or after the name.
            withUnsafeMutableBytes(of: &raw) { $0[start...].copyBytes(from: name.bytes) }
            return Self.with(&raw, Self.startOfPath + 1 + name.bytes.count, body)
        }
    }

    /// Stores the address in the kernel's format, followed by zeros, and returns its length.
    @discardableResult
    package func store(in storage: UnsafeMutablePointer<sockaddr_storage>) -> socklen_t {
        withSocketAddress { raw, length in
            storage.pointee = sockaddr_storage()
            UnsafeMutableRawPointer(storage).copyMemory(from: raw, byteCount: Int(length))
            return length
        }
    }

    package var storage: sockaddr_storage {
        var storage = sockaddr_storage()
        store(in: &storage)
        return storage
    }

    package func with(port: UInt16) -> SocketAddress {
        var copy = self
        copy.port = port
        return copy
    }

    private static func with<Raw, Result>(
        _ raw: inout Raw, _ size: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: &raw) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(size)) }
        }
    }

    private static var startOfPath: Int { MemoryLayout<sa_family_t>.size }

    /// Fails for an unsupported family, and for a Unix socket without an address, as most clients' are.
    ///
    /// Drops zeros at the end of an abstract name, since the storage lacks the name's length.
    package init?(_ storage: sockaddr_storage) {
        let parsed = withUnsafeBytes(of: storage) { bytes -> SocketAddress? in
            switch CInt(storage.ss_family) {
            case AF_INET:
                let raw = bytes.loadUnaligned(as: sockaddr_in.self)
                return SocketAddress(host: .v4(raw.sin_addr.s_addr), port: UInt16(bigEndian: raw.sin_port))
            case AF_INET6:
                let raw = bytes.loadUnaligned(as: sockaddr_in6.self)
                let (high, low) = withUnsafeBytes(of: raw.sin6_addr) {
                    ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                }
                let host = Host.v6(high, low, scope: raw.sin6_scope_id)
                return SocketAddress(host: host, port: UInt16(bigEndian: raw.sin6_port))
            case AF_UNIX:
                return Self.unixName(bytes[Self.startOfPath..<MemoryLayout<sockaddr_un>.size])
                    .map { SocketAddress(host: .unix($0), port: 0) }
            default:
                return nil
            }
        }
        guard let parsed else { return nil }
        self = parsed
    }

    package init?(_ raw: UnsafePointer<sockaddr>, _ length: socklen_t) {
        var storage = sockaddr_storage()
        let count = min(Int(length), MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: count)) }
        self.init(storage)
    }

    private static func unixName(_ field: Slice<UnsafeRawBufferPointer>) -> UnixSocketPath? {
        if field.first != 0 {
            // A path without a final zero fills the kernel's field and could not be passed back.
            let name = UnixSocketPath(bytes: Array(field.prefix { $0 != 0 }), isAbstract: false)
            return name.bytes.count <= UnixSocketPath.capacity ? name : nil
        }
        guard let last = field.lastIndex(where: { $0 != 0 }) else { return nil }
        return UnixSocketPath(bytes: Array(field[field.startIndex...last].dropFirst()), isAbstract: true)
    }
}
