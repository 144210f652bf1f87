/// A block of 64 KiB that a loop lends to code that reads on it.
///
/// Invariant: used on the loop's thread only. At most one block is kept; a lent block belongs to the borrower until it
/// is given back.
struct ScratchBuffer: ~Copyable {
    private var block: UnsafeMutableRawBufferPointer?

    deinit { block?.deallocate() }

    /// The block, allocated on first use.
    mutating func get() -> UnsafeMutableRawBufferPointer {
        if let block { return block }
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        block = fresh
        return fresh
    }

    mutating func lend() -> UnsafeMutableRawBufferPointer {
        let lent = get()
        block = nil
        return lent
    }

    mutating func giveBack(_ lent: UnsafeMutableRawBufferPointer) {
        // The borrower may have turned the loop, which has then allocated another block.
        if block == nil { block = lent } else { lent.deallocate() }
    }
}
