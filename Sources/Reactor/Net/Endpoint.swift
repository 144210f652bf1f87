import ReactorLibc

/// The place where a listener listens or a client connects: a `SocketAddress`, its text, or an array of either.
///
/// ```swift
/// let listener = try Listener.bind(["127.0.0.1:0", "unix:/run/echo.sock"])
/// connect(to: listener.localAddress)
/// connect(to: host + ":80")
/// ```
///
/// The texts are `127.0.0.1:7000`, `[::1]:7000`, `[fe80::1%eth0]:7000`, `localhost:7000`, `unix:/run/service.sock`,
/// `unix:@name`, and for `connect` also `example.com:80`. For any other text, the call throws a
/// `SocketAddress.ParseError` that contains the text. `localhost` and all names below it mean 127.0.0.1 and ::1,
/// without a lookup (RFC 6761).
public protocol Endpoint: Sendable {
    /// The endpoint in the library's form.
    var _endpoint: _Endpoint { get }
}

/// The kinds of `Endpoint`.
public indirect enum _Endpoint: Sendable {
    case address(SocketAddress)
    case text(String)
    case list([_Endpoint])

    /// - Parameter takesNames: true to accept host names other than `localhost`. A list never accepts them.
    package func places(takesNames: Bool = false) throws(SocketAddress.ParseError) -> [ParsedEndpoint] {
        switch self {
        case .address(let address): return [.address(address)]
        case .text(let text): return [try ParsedEndpoint(text, takesNames: takesNames)]
        case .list(let endpoints):
            var places: [ParsedEndpoint] = []
            for endpoint in endpoints { places += try endpoint.places() }
            return places
        }
    }

    /// Returns the only address, for a socket with one; `localhost` is 127.0.0.1 here.
    package func address(for call: SystemCall) throws -> SocketAddress {
        let places = try places()
        guard let first = places.first, places.count == 1 else {
            throw SystemError(call, EINVAL, detail: "\(text): a datagram socket has one address")
        }
        return first.addresses.last!
    }

    package var isList: Bool {
        if case .list = self { true } else { false }
    }

    /// The caller's text, or the addresses.
    package var text: String {
        switch self {
        case .address(let address): address.description
        case .text(let text): text
        case .list(let endpoints): endpoints.map(\.text).joined(separator: ", ")
        }
    }
}

extension SocketAddress: Endpoint {
    /// The endpoint in the library's form.
    public var _endpoint: _Endpoint { .address(self) }
}

extension String: Endpoint {
    /// The endpoint in the library's form.
    public var _endpoint: _Endpoint { .text(self) }
}

extension Array: Endpoint where Element: Endpoint {
    /// The endpoint in the library's form.
    public var _endpoint: _Endpoint { .list(map(\._endpoint)) }
}

extension Endpoint where Self == SocketAddress {
    /// Makes an address on the loopback interface.
    /// - Parameter port: the port in this machine's byte order; 0 lets the kernel choose.
    public static func loopback(port: UInt16) -> SocketAddress {
        SocketAddress(host: .v4(UInt32(0x7F00_0001).bigEndian), port: port)
    }
}
