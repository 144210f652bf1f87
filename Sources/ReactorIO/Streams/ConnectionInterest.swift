import Reactor

/// The events that the poller should report to a connection.
///
/// While an operation is pending, the connection is retained: by the poller, because this interest is not empty, or by
/// the `FlushJob` of a corked write. The end of the loop ends the operations of both. So a read need not retain its
/// connection.
struct ConnectionInterest {
    // Event bits of epoll. Connections use only bits below 2^16.
    private var registeredBits: UInt16 = 0
    private var ends: UInt16 = 0

    var registered: Interest {
        @inline(__always) get { Interest(rawValue: UInt32(registeredBits)) }
        @inline(__always) set { registeredBits = UInt16(truncatingIfNeeded: newValue.rawValue) }
    }

    var watchesPeer: Bool { ends != 0 }

    mutating func watch(_ ends: Interest) { self.ends = UInt16(truncatingIfNeeded: ends.rawValue) }

    /// Returns the wanted interest, without `restingInterest`.
    @inline(__always)
    func wanted(toRead reads: Bool, toWrite writes: Bool) -> Interest {
        var wanted = Interest(rawValue: UInt32(ends))
        if reads { wanted.insert(.reading) }
        if writes { wanted.insert(.writing) }
        return wanted
    }
}
