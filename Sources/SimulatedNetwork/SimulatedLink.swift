/// A link between two hosts, in one or both directions, with the members of `LinkSettings`.
///
/// ```swift
/// network.link(web, database).latency = .milliseconds(3) ... .milliseconds(9)
/// network.link(from: web, to: database).bandwidth = 1_000_000
/// network.link(web, database).hold()
/// ```
@dynamicMemberLookup
public struct SimulatedLink {
    let ways: [SimulatedWay]

    /// A setting of all directions; reading returns the first's.
    public subscript<Value>(dynamicMember member: WritableKeyPath<LinkSettings, Value>) -> Value {
        get { ways[0].settings[keyPath: member] }
        nonmutating set { for way in ways { way.settings[keyPath: member] = newValue } }
    }

    /// Holds up every packet, also datagrams, until `release()`.
    public func hold() { for way in ways { way.hold(losesDatagrams: false) } }
    /// Releases the held packets, in order.
    public func release() { for way in ways { way.release() } }
}
