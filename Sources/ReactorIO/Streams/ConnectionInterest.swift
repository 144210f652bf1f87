import Reactor

/// The events that the poller should report to a connection.
///
/// While an operation is pending, the poller retains the connection, because this is not empty, or the `FlushJob` of a
/// corked write does. The end of the loop ends the operations of both. So a pending read need not retain its
/// connection.
struct ConnectionInterest {
    // Bits of epoll. Connections use those below 2^16.
    private var registeredBits: UInt16 = 0
    private var ends: UInt16 = 0

    var registered: Interest {
        @inline(__always) get { Interest(rawValue: UInt32(registeredBits)) }
        @inline(__always) set { registeredBits = UInt16(truncatingIfNeeded: newValue.rawValue) }
    }

    var watchesPeer: Bool { ends != 0 }

    /// Sets the watched events of the peer's end.
    mutating func watch(_ ends: Interest) { self.ends = UInt16(truncatingIfNeeded: ends.rawValue) }

    /// The wanted interest, apart from `restingInterest`.
    @inline(__always)
    func wanted(toRead reads: Bool, toWrite writes: Bool) -> Interest {
        var wanted = Interest(rawValue: UInt32(ends))
        if reads { wanted.insert(.reading) }
        if writes { wanted.insert(.writing) }
        return wanted
    }
}
