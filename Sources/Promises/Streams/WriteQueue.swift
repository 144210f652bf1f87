import Glibc

/// A connection's bytes that the kernel has not taken yet, and the promises of their writes.
///
/// Small writes are joined in blocks; a large write keeps its own array, or shares its memory, and is not copied. One
/// call sends several blocks. A connection has a queue only while writes wait, which for most connections is never.
///
/// Blocks and writes are numbered in order, and refer to each other by number, so that nothing is searched: the cost of
/// a withdrawal does not depend on the number of pending writes.
final class WriteQueue {
    private struct Block {
        /// Empty if the block is of shared memory.
        var bytes: [UInt8]
        var kept: KeptBlock?
        var count: Int { kept?.bytes.count ?? bytes.count }
        var memory: Int { kept?.memory ?? bytes.capacity }
        /// Whether it holds small writes, and takes more of them.
        let isJoined: Bool
        /// The number of bytes of withdrawn writes, which are cut out before the block is sent.
        var withdrawnBytes = 0
        var needsCompaction: Bool { withdrawnBytes > 0 }
        var writes: ClosedRange<Int>

        func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
            kept?.bytes.withUnsafeBytes(body) ?? bytes.withUnsafeBytes(body)
        }
    }

    /// A write.
    private struct PendingWrite {
        /// `nil` if the write was withdrawn, and for gathered bytes, whose promises have been fulfilled.
        var promise: PromiseCore?
        /// The number of its bytes that were queued.
        var count: Int
        /// Whether the kernel had already taken a part of it.
        let isBegun: Bool
        /// The first of the blocks that hold its bytes.
        var block: Int
        /// The number of these blocks.
        let blocks: Int
        /// The position of its bytes in the first of these blocks.
        var offset: Int
        /// Whether it was withdrawn.
        var isWithdrawn: Bool { promise == nil && count == 0 }
    }

    private var blocks = IndexedQueue<Block>()
    /// The memory of the arrays in `blocks`.
    private var blockMemory = 0
    /// The part of it that a budget counts separately, since others may share it.
    private(set) var sharedMemory = 0
    private var pending = IndexedQueue<PendingWrite>()
    /// The number of bytes of the first block that have been sent.
    private var offset = 0
    /// The number of bytes of the first write that have been sent.
    private var sentOfFirst = 0
    /// The number of queued bytes.
    private(set) var count = 0
    /// The number of withdrawn writes that are still in `pending`.
    private var withdrawnWrites = 0
    /// The number of bytes of withdrawn writes that are still in blocks.
    private var withdrawnBytes = 0

    /// The memory of a write apart from its bytes, for its promise and its entry: 185 bytes on a 64-bit machine,
    /// measured with a million writes.
    static var weightOfWrite: Int { 192 }
    /// The approximate memory of all queued bytes and writes.
    var weight: Int { count + pending.numbers.count * Self.weightOfWrite }
    /// As `weight`, including bytes of a block that the kernel has taken, and unused room in it.
    var memory: Int { blockMemory + pending.numbers.count * Self.weightOfWrite }
    /// The number of queued writes.
    var writes: Int { pending.numbers.count - withdrawnWrites }

    /// The size of a block of joined small writes. Larger writes get separate blocks.
    static var coalesceLimit: Int { 16_384 }
    /// IOV_MAX: the kernel refuses more pieces in a call.
    static var mostPieces: Int { 1024 }
    /// A call offers further blocks until it offers this many bytes.
    private static var mostBytes: Int { 256 << 10 }

    var isEmpty: Bool { pending.isEmpty }

    /// The promises of the queued writes.
    var promises: [PromiseCore] { pending.numbers.compactMap { pending[$0].promise } }

    // MARK: Appending

    /// Queues `bytes` from `start` on. The caller of `advance` settles the promise.
    /// - Parameter isFinal: whether the rest of the stream depends on the bytes, as on a filter's output: then the write
    ///   cannot be withdrawn.
    func append(_ bytes: [UInt8], from start: Int = 0, isFinal: Bool = false, _ promise: PromiseCore?) {
        let (count, isBegun) = (bytes.count - start, isFinal || start > 0)
        if count == 0 { return note(promise, 0, in: 0) }
        if count <= Self.coalesceLimit {
            return bytes.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[start...]), isBegun, promise) }
        }
        if blocks.isEmpty {
            // The array is kept whole, and its first `start` bytes count as sent.
            offset = start
            appendBlock(bytes)
            note(promise, count, in: 1, at: start, isBegun: isBegun)
        } else {
            appendBlock(start == 0 ? bytes : Array(bytes[start...]))
            note(promise, count, in: 1, isBegun: isBegun)
        }
    }

    /// Queues a copy of lent bytes.
    func append(_ bytes: UnsafeRawBufferPointer, _ isBegun: Bool, _ promise: PromiseCore?) {
        if bytes.isEmpty { return note(promise, 0, in: 0) }
        if bytes.count > Self.coalesceLimit {
            appendBlock([UInt8](bytes))
            return note(promise, bytes.count, in: 1, isBegun: isBegun)
        }
        if promise == nil && extendLast(by: bytes) { return }
        let place = join(bytes)
        note(promise, bytes.count, in: 1, at: place, isBegun: isBegun)
    }

    /// Takes the promises of the queued writes; their bytes are still sent.
    func takePromises() -> [PromiseCore] {
        let taken = promises
        for number in pending.numbers where pending[number].promise != nil {
            pending[number].promise = nil
            if pending[number].isWithdrawn { withdrawnWrites += 1 }
        }
        return taken
    }

    /// Queues the rest of several pieces as one write, in separate blocks.
    /// - Parameters:
    ///   - sent: the number of their bytes that the kernel has taken.
    ///   - budget: counts the memory of the pieces that are not copied.
    func append(_ pieces: [SharedBytes], from sent: Int, _ promise: PromiseCore?, _ budget: MemoryBudget?) {
        let first = blocks.end
        var (left, count) = (sent, 0)
        for piece in pieces {
            let rest = piece[min(left, piece.count)..<piece.count]
            left -= piece.count - rest.count
            count += rest.count
            if rest.count >= SharedBytes.leastKept {
                let kept = KeptBlock(rest, budget)
                blockMemory += kept.memory
                if budget != nil { sharedMemory += kept.memory }
                blocks.append(Block(bytes: [], kept: kept, isJoined: false, writes: pending.end...pending.end))
            } else if !rest.isEmpty {
                appendBlock([UInt8](rest))
            }
        }
        note(promise, count, in: blocks.end - first, isBegun: sent > 0)
    }

    /// Adds `bytes` to the last block if that has room for them, and to a new one otherwise.
    /// - Returns: their position in the block.
    private func join(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !blocks.isEmpty {
            let last = blocks.end - 1
            let place = blocks[last].bytes.count
            if blocks[last].isJoined && place + bytes.count <= Self.coalesceLimit {
                change(last) { $0.append(contentsOf: bytes) }
                blocks[last].writes = blocks[last].writes.lowerBound...pending.end
                return place
            }
        }
        appendBlock([UInt8](bytes), isJoined: true)
        return 0
    }

    /// Adds `bytes` without a promise to the last write if that has none either, and they fit into its block.
    private func extendLast(by bytes: UnsafeRawBufferPointer) -> Bool {
        guard !blocks.isEmpty, !pending.isEmpty else { return false }
        let (block, write) = (blocks.end - 1, pending.end - 1)
        guard blocks[block].isJoined, blocks[block].bytes.count + bytes.count <= Self.coalesceLimit,
            pending[write].promise == nil, pending[write].count > 0, pending[write].block == block,
            pending[write].blocks == 1
        else { return false }
        change(block) { $0.append(contentsOf: bytes) }
        pending[write].count += bytes.count
        count += bytes.count
        return true
    }

    private func change(_ block: Int, _ body: (inout [UInt8]) -> Void) {
        blockMemory -= blocks[block].bytes.capacity
        body(&blocks[block].bytes)
        blockMemory += blocks[block].bytes.capacity
    }

    private func appendBlock(_ bytes: [UInt8], isJoined: Bool = false) {
        blockMemory += bytes.capacity
        blocks.append(Block(bytes: bytes, isJoined: isJoined, writes: pending.end...pending.end))
    }

    private func note(
        _ promise: PromiseCore?, _ count: Int, in blocks: Int, at offset: Int = 0, isBegun: Bool = false
    ) {
        promise?.queuedWrite.pointee.number = pending.end
        let first = self.blocks.end - blocks
        pending.append(
            PendingWrite(promise: promise, count: count, isBegun: isBegun, block: first, blocks: blocks, offset: offset)
        )
        self.count += count
    }

    // MARK: Sending

    /// Calls `body` with the bytes to send next, in at most 1024 pieces. Does not call it if only empty writes are
    /// left.
    /// - Returns: the result of `body`, and the number of bytes that it was offered.
    func withIOVectors(_ body: (UnsafeBufferPointer<iovec>) -> Int) -> (result: Int, offered: Int) {
        dropFinishedBlocks()
        if blocks.isEmpty { return (0, 0) }
        let most = min(blocks.numbers.count, Self.mostPieces)
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: most) { pieces in
            var used = 0
            var offered = 0
            for number in blocks.numbers {
                if used == most || offered >= Self.mostBytes { break }
                if blocks[number].needsCompaction { compactBlock(number) }
                let skipped = number == blocks.start ? offset : 0
                let count = blocks[number].count - skipped
                if count == 0 { continue }
                // The address is valid until `body` returns: it points into memory that the block retains, and `body`
                // does not change the queue.
                let piece = blocks[number].withUnsafeBytes {
                    iovec(of: UnsafeRawBufferPointer(rebasing: $0[skipped...]))
                }
                (pieces.baseAddress! + used).initialize(to: piece)
                used += 1
                offered += count
            }
            let filled = UnsafeBufferPointer(rebasing: pieces[..<used])
            return (used == 0 ? 0 : body(filled), offered)
        }
    }

    /// Removes the first `count` bytes, which the kernel has taken.
    /// - Returns: the promises of the writes that have been sent completely.
    func advance(_ count: Int) -> [PromiseCore] {
        self.count -= count
        offset += count
        dropFinishedBlocks()
        var finished: [PromiseCore] = []
        sentOfFirst += count
        while !pending.isEmpty, pending[pending.start].count <= sentOfFirst {
            let write = pending.removeFirst()
            sentOfFirst -= write.count
            if write.isWithdrawn { withdrawnWrites -= 1 }
            if let promise = write.promise { finished.append(promise) }
        }
        return finished
    }

    private func dropFinishedBlocks() {
        while !blocks.isEmpty, !blocks[blocks.start].needsCompaction, blocks[blocks.start].count <= offset {
            let block = blocks.removeFirst()
            offset -= block.count
            forget(block)
        }
        if blocks.isEmpty { offset = 0 }
    }

    /// Stops counting the memory of a block that is about to be released.
    private func forget(_ block: Block) {
        blockMemory -= block.memory
        if let kept = block.kept, kept.isCounted { sharedMemory -= kept.memory }
    }

    // MARK: Withdrawing

    /// Withdraws a write.
    /// - Returns: false if the kernel has taken some of its bytes: the stream cannot continue without the rest.
    func withdraw(_ promise: PromiseCore) -> Bool {
        let number = promise.queuedWrite.pointee.number
        guard pending.numbers.contains(number), pending[number].promise === promise else { return false }
        let write = pending[number]
        let isBegun = write.isBegun || number == pending.start && sentOfFirst > 0
        if isBegun { return false }
        pending[number].promise = nil
        pending[number].count = 0
        count -= write.count
        for block in write.block..<write.block + write.blocks {
            if blocks[block].isJoined {
                blocks[block].withdrawnBytes += write.count
                withdrawnBytes += write.count
            } else {
                forget(blocks[block])
                (blocks[block].bytes, blocks[block].kept) = ([], nil)
            }
        }
        withdrawnWrites += 1
        while !pending.isEmpty, pending[pending.start].isWithdrawn {
            _ = pending.removeFirst()
            withdrawnWrites -= 1
        }
        if withdrawnWrites >= 64 && withdrawnWrites > writes || withdrawnBytes >= 65536 && withdrawnBytes > count {
            compactAll()
        }
        return true
    }

    /// Queues all writes anew, without the remains of withdrawn ones. Called when these outweigh the rest: so writes that
    /// are queued and withdrawn after one that the peer does not read take no memory, at a constant cost for each.
    private func compactAll() {
        let (oldBlocks, oldPending, queued) = (blocks, pending, count)
        // What is noted below has the sent bytes of the first write in it.
        defer { count = queued }
        (blocks, pending) = (IndexedQueue(), IndexedQueue())
        (blockMemory, withdrawnWrites, withdrawnBytes) = (0, 0, 0)
        if !oldBlocks.isEmpty && oldBlocks[oldBlocks.start].isJoined { offset = 0 }
        for number in oldPending.numbers where !oldPending[number].isWithdrawn {
            let write = oldPending[number]
            // A partly sent write may have lost its first blocks.
            let places = (write.block..<write.block + write.blocks).clamped(to: oldBlocks.numbers)
            if let place = places.first, oldBlocks[place].isJoined {
                let sent = number == oldPending.start ? sentOfFirst : 0
                if sent > 0 { sentOfFirst = 0 }
                oldBlocks[place].withUnsafeBytes {
                    let rest = $0[write.offset + sent..<write.offset + write.count]
                    append(UnsafeRawBufferPointer(rebasing: rest), write.isBegun || sent > 0, write.promise)
                }
            } else {
                for place in places {
                    blockMemory += oldBlocks[place].memory
                    blocks.append(oldBlocks[place])
                }
                note(write.promise, write.count, in: places.count, at: write.offset, isBegun: write.isBegun)
            }
        }
    }

    /// Removes withdrawn and sent bytes from a block of joined writes.
    private func compactBlock(_ number: Int) {
        let old = blocks[number].bytes
        let isFirst = number == blocks.start
        var kept: [UInt8] = []
        for place in pending.numbers.clamped(to: Range(blocks[number].writes)) where pending[place].count > 0 {
            guard pending[place].block == number else { continue }
            let gone = place == pending.start ? sentOfFirst : 0
            let start = pending[place].offset + gone
            pending[place].offset = kept.count - gone
            kept += old[start..<start + pending[place].count - gone]
        }
        change(number) { $0 = kept }
        withdrawnBytes -= blocks[number].withdrawnBytes
        blocks[number].withdrawnBytes = 0
        if isFirst { offset = 0 }
    }
}

/// Shared memory, or a part of it, that waits in a queue. Released with its block: when the kernel has taken it, when
/// its write is withdrawn, and when the connection fails or ends.
private final class KeptBlock {
    let bytes: SharedBytes
    private let budget: MemoryBudget?
    let memory: Int
    var isCounted: Bool { budget != nil }

    init(_ bytes: SharedBytes, _ budget: MemoryBudget?) {
        self.bytes = bytes
        self.budget = budget
        memory = bytes.extent.count
        budget?.hold(bytes)
    }

    deinit { budget?.release(bytes) }
}
