import Reactor

/// What a pool connects to: the key by which its connections are kept, in each of the forms that `connect(to:)` takes.
enum PoolTarget: Hashable, CustomStringConvertible {
    case address(SocketAddress)
    case addresses([SocketAddress])
    /// A host name and a port, or a text that `connect` will refuse.
    case name(String)

    /// Texts for one address are one target: `localhost:80` and `127.0.0.1:80`.
    init(_ text: String) {
        if case .address(let address)? = try? Endpoint(text) { self = .address(address) } else { self = .name(text) }
    }

    var description: String {
        switch self {
        case .address(let address): address.description
        case .addresses(let addresses): addresses.map(\.description).joined(separator: ", ")
        case .name(let name): name
        }
    }
}
