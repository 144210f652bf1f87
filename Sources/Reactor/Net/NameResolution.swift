import CLinux
import Glibc

/// Why a name has no addresses: what getaddrinfo(3) answered.
public struct NameLookupError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name.
    public let host: String
    /// The code of getaddrinfo, for example `EAI_NONAME`.
    public let code: CInt
    /// The `errno` where `code` is `EAI_SYSTEM`, otherwise 0.
    public let systemCode: CInt

    /// An error for `host`; for a lookup of your own.
    public init(host: String, code: CInt, systemCode: CInt = 0) {
        self.host = host
        self.code = code
        self.systemCode = systemCode
    }

    /// Whether another try may succeed: no server has answered.
    public var isTemporary: Bool { code == EAI_AGAIN }

    /// `look up example.invalid: Name or service not known`
    public var description: String {
        let reason = code == EAI_SYSTEM ? strerror(systemCode) : UnsafeMutablePointer(mutating: gai_strerror(code))
        return "look up \(host): \(reason.map { String(cString: $0) } ?? "error \(code)")"
    }
}

extension SocketAddress {
    /// The addresses of `host` in the order in which the system prefers them (RFC 6724), with `port`. Blocks its thread,
    /// perhaps for many seconds.
    package static func lookUp(_ host: String, port: UInt16) throws(NameLookupError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        // Otherwise every address comes once for each kind of socket.
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            throw NameLookupError(host: host, code: code, systemCode: code == EAI_SYSTEM ? errno : 0)
        }
        defer { freeaddrinfo(list) }
        return sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
            guard let info = entry?.pointee, let raw = info.ai_addr else { return nil }
            var storage = sockaddr_storage()
            let count = min(Int(info.ai_addrlen), MemoryLayout<sockaddr_storage>.size)
            withUnsafeMutableBytes(of: &storage) {
                $0.copyMemory(from: UnsafeRawBufferPointer(start: UnsafeRawPointer(raw), count: count))
            }
            var address = SocketAddress(storage)
            address?.port = port
            return address
        }
    }
}
