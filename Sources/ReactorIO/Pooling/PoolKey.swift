import Promises
import Reactor

/// Identifies the server of a pooled resource, or any other group of interchangeable resources.
///
/// All spellings of one address are one key, equal to the address: `[::1]:80`, `[0::1]:80`. `localhost:80`, which has
/// two addresses, is a separate key.
public enum PoolKey: Hashable, Sendable {
    /// An address.
    case address(SocketAddress)
    /// A list of addresses, which forms one key. The first address that accepts the connection is used.
    case addresses([SocketAddress])
    /// A host name and a port, looked up for each new connection. In a pool of other resources, any string.
    case name(String)

    /// The canonical key, equal for all spellings of one address.
    var unique: PoolKey {
        guard case .name(let text) = self, case .address(let address)? = try? ParsedEndpoint(text) else { return self }
        return .address(address)
    }
}

extension PoolKey: Endpoint {
    /// The endpoint as the library sees it.
    public var _endpoint: _Endpoint {
        switch self {
        case .address(let address): .address(address)
        case .addresses(let addresses): addresses._endpoint
        case .name(let name): .text(name)
        }
    }
}

extension PoolKey: ExpressibleByStringLiteral, CustomStringConvertible {
    /// Makes a key from a name or an address.
    public init(stringLiteral text: String) { self = .name(text) }

    /// The string for the address, the list or the name.
    public var description: String {
        switch self {
        case .address(let address): address.description
        case .addresses(let addresses): addresses.map(\.description).joined(separator: ", ")
        case .name(let name): name
        }
    }
}
