/// Memory that a loop lends to code on its thread: a block of 64 KiB for reads, and an array for a message that is
/// being built. So neither idle connections nor small messages have their own.
///
/// Invariant: used on the loop's thread only. At most one block is kept; a lent block belongs to the borrower until it
/// is given back. The loop has the only copy of this value, and calls `free` at its end and in its `deinit`.
@usableFromInline
struct LoopBuffers {
    @usableFromInline var block: UnsafeMutableRawBufferPointer?
    private var spareOutput: [UInt8] = []
    /// Bytes of the block received for the code called next, which must first take them.
    @usableFromInline var received: UnsafeRawBufferPointer?

    init() {}

    mutating func free() {
        block?.deallocate()
        block = nil
        spareOutput = []
    }

    /// The block, for a read whose bytes are copied out of it. Valid until the next read on this loop.
    @inlinable @inline(__always)
    var scratch: UnsafeMutableRawBufferPointer {
        mutating get {
            if let block { return block }
            return makeBlock()
        }
    }

    @usableFromInline @inline(never)
    mutating func makeBlock() -> UnsafeMutableRawBufferPointer {
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        block = fresh
        return fresh
    }

    /// The block, to be lent to user code. Nothing else reads into it until `giveBack`.
    @inlinable @inline(__always)
    mutating func borrowScratch() -> UnsafeMutableRawBufferPointer {
        let lent = scratch
        block = nil
        return lent
    }

    @inlinable @inline(__always)
    mutating func giveBack(_ lent: UnsafeMutableRawBufferPointer) {
        // The borrower may have turned the loop, which has then allocated another block.
        if block == nil { block = lent } else { lent.deallocate() }
    }

    /// Takes the array for a message. It is empty, and may have capacity; a message that is built inside another one
    /// gets none.
    mutating func takeSpareOutput() -> [UInt8] {
        var spare: [UInt8] = []
        swap(&spare, &spareOutput)
        return spare
    }

    /// Keeps the memory of `bytes`, which no other array shares, for the next message.
    mutating func giveBack(spareOutput bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        swap(&bytes, &spareOutput)
    }
}
