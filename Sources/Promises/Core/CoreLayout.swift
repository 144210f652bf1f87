import Reactor

// Layout that the compiler does not check.

extension PromiseCore {
    /// Describes the first misplaced field of this new core, which no other party may have seen, and the code that
    /// relies on its place; `nil` if there is none. A debug build checks each new core: after a stored property is
    /// added to `Job` or `PromiseCore`, the first promise ends the program, instead of corrupting memory.
    final func layoutFault(payloadOffset: Int = CorePayload.offset) -> String? {
        if address & ~StateWord.addressMask != 0 {
            return "the address of a core has low bits, which StateWord uses for its marks"
        }
        if hasSideTable {
            return "the reference counts are not where hasSideTable reads them"
        }
        let words = (ref.pointer + payloadOffset).assumingMemoryBound(to: UInt.self)
        if !hasPayload(at: words) {
            return "PromiseCore.payload does not begin at byte \(payloadOffset), as CorePayload.offset says"
        }
        return nil
    }

    /// True when the runtime counts the references in a side table, as it does after the first weak reference. The word
    /// after the metadata then has its two highest bits set.
    @inline(__always)
    final var hasSideTable: Bool { (ref.pointer + 8).load(as: UInt.self) >> 62 == 3 }
}
