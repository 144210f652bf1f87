/// What only the thread of a core's loop reads and writes, in one word: marks, and a number.
struct HomeWord {
    private var bits: UInt32 = 0

    private static var marksMask: UInt32 { 0x1F }
    private static var numberShift: UInt32 { 5 }

    /// What the core is about to do.
    var marks: CoreMarks {
        @inline(__always) get { CoreMarks(rawValue: UInt8(truncatingIfNeeded: bits & Self.marksMask)) }
        @inline(__always) set { bits = bits & ~Self.marksMask | UInt32(newValue.rawValue) }
    }

    /// The number of the waiter among the `OutsideWaiters` of its loop, or zero. It has 27 bits, as is known there.
    var outsideNumber: UInt32 {
        @inline(__always) get { bits >> Self.numberShift }
        @inline(__always) set { bits = bits & Self.marksMask | newValue << Self.numberShift }
    }
}
