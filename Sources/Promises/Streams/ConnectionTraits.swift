/// The properties of a connection's descriptor.
///
/// Each read and each write checks a trait. Traits are *diverted* to bits that these checks do not look at while a
/// message must not go straight to the kernel: the connection has a filter, or lingers. So a connection without a
/// filter pays nothing for those that have one.
struct ConnectionTraits: OptionSet {
    let rawValue: UInt8

    static var tcp: ConnectionTraits { ConnectionTraits(rawValue: 1) }
    /// It supports recv(2), send(2) and shutdown(2), and not only read(2) and write(2).
    static var socket: ConnectionTraits { ConnectionTraits(rawValue: 2) }
    static var reads: ConnectionTraits { ConnectionTraits(rawValue: 4) }
    static var writes: ConnectionTraits { ConnectionTraits(rawValue: 8) }

    var isDiverted: Bool { rawValue >= 16 }
    var diverted: ConnectionTraits { ConnectionTraits(rawValue: rawValue << 4) }
    /// The traits, diverted or not.
    var direct: ConnectionTraits { isDiverted ? ConnectionTraits(rawValue: rawValue >> 4) : self }
}
