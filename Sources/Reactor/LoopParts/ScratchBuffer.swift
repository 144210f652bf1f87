/// A block of 64 KiB that a loop lends to code that reads on it.
///
/// Invariant: used on the loop's thread only. At most one block is kept; a lent block belongs to the borrower until it
/// is given back. The loop has the only copy of this value, and its `deinit` frees the block.
@usableFromInline
struct ScratchBuffer {
    @usableFromInline var block: UnsafeMutableRawBufferPointer?

    init() {}

    func free() { block?.deallocate() }

    /// The block, allocated on first use.
    @inlinable @inline(__always)
    mutating func get() -> UnsafeMutableRawBufferPointer {
        if let block { return block }
        return make()
    }

    @usableFromInline @inline(never)
    mutating func make() -> UnsafeMutableRawBufferPointer {
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        block = fresh
        return fresh
    }

    @inlinable @inline(__always)
    mutating func lend() -> UnsafeMutableRawBufferPointer {
        let lent = get()
        block = nil
        return lent
    }

    @inlinable @inline(__always)
    mutating func giveBack(_ lent: UnsafeMutableRawBufferPointer) {
        // The borrower may have turned the loop, which has then allocated another block.
        if block == nil { block = lent } else { lent.deallocate() }
    }
}
