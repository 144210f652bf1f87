/// Memory lent to code on the loop's thread: 64 KiB for reads, and an array for a message under construction. So idle
/// connections and small messages need no memory.
///
/// Invariant: used on the loop's thread only. Keeps at most one block; a lent block belongs to the borrower. The loop
/// has the only copy of this value, and calls `free` when it ends and in its `deinit`.
@usableFromInline
struct LoopBuffers {
    @usableFromInline var block: UnsafeMutableRawBufferPointer?
    private var spareOutput: [UInt8] = []
    /// Received bytes in the block, for the code called next, which must take them first.
    @usableFromInline var received: UnsafeRawBufferPointer?

    init() {}

    mutating func free() {
        block?.deallocate()
        block = nil
        spareOutput = []
    }

    /// Returns the block, for a read whose bytes are copied out. Valid until the loop's next read.
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

    /// Lends the block to user code. Nothing reads into the block until `giveBack`.
    @inlinable @inline(__always)
    mutating func borrowScratch() -> UnsafeMutableRawBufferPointer {
        let lent = scratch
        block = nil
        return lent
    }

    @inlinable @inline(__always)
    mutating func giveBack(_ lent: UnsafeMutableRawBufferPointer) {
        // The borrower may have turned the loop, which may have allocated another block.
        if block == nil { block = lent } else { lent.deallocate() }
    }

    /// Takes the message array, which is empty but may have capacity. A message built inside another gets no capacity.
    mutating func takeSpareOutput() -> [UInt8] {
        var spare: [UInt8] = []
        swap(&spare, &spareOutput)
        return spare
    }

    /// Keeps the memory of `bytes`, which must not be shared, for the next message.
    mutating func giveBack(spareOutput bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        swap(&bytes, &spareOutput)
    }
}
