import Reactor

/// What a resource of a pool belongs to, usually a server: the key by which resources are kept.
///
/// Texts for one address are one key, and so is that address: `[::1]:80`, `[0::1]:80`. `localhost:80`, which is two
/// addresses, is a key of its own.
public enum PoolKey: Hashable, Sendable {
    /// An address.
    case address(SocketAddress)
    /// A list of addresses, of which the first that accepts is used. The list as a whole is the key.
    case addresses([SocketAddress])
    /// A host name and a port, which is looked up for each new connection; or any text, in a pool that makes something else.
    case name(String)

    /// The key that all of its texts share.
    var unique: PoolKey {
        guard case .name(let text) = self, case .address(let address)? = try? Endpoint(text) else { return self }
        return .address(address)
    }
}

extension PoolKey: ExpressibleByStringLiteral, CustomStringConvertible {
    /// A name, or the text of an address.
    public init(stringLiteral text: String) { self = .name(text) }

    /// The text of the address, the list or the name.
    public var description: String {
        switch self {
        case .address(let address): address.description
        case .addresses(let addresses): addresses.map(\.description).joined(separator: ", ")
        case .name(let name): name
        }
    }
}
