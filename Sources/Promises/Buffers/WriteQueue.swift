import Glibc

/// The bytes of a connection that the kernel has not taken yet, and the promises of the writes that they belong to.
///
/// Small writes are gathered in blocks; a large one keeps its own array and is not copied. Blocks leave together, with
/// one call. A connection has a queue only while something waits, which most never do.
///
/// Blocks and writes are numbered as they come, and know each other by number, so that nothing is searched: to take a
/// write back costs no more than its own block, however many wait.
final class WriteQueue {
    private struct Block {
        var bytes: [UInt8]
        /// Several small writes are in it, and more may come.
        let isShared: Bool
        /// Bytes of writes in it that were taken back: they are cut out when the block is next to be sent.
        var void = 0
        var needsCompaction: Bool { void > 0 }
        var marks: ClosedRange<Int>
    }

    /// A write.
    private struct PendingWrite {
        /// `nil` if it was taken back, and of bytes that were promised as written before.
        var promise: WritePromise?
        /// How many of its bytes were queued.
        var count: Int
        /// The kernel had taken a part of it before.
        let isBegun: Bool
        /// Where its bytes are: in how many blocks, the first of which this is, and where in it they begin.
        var block: Int
        let blocks: Int
        var offset: Int
        /// Whether it was taken back.
        var isVoid: Bool { promise == nil && count == 0 }
    }

    private var blocks = IndexedQueue<Block>()
    private var marks = IndexedQueue<PendingWrite>()
    /// How much of the first block is gone, and how much of the first write.
    private var offset = 0
    private var sentOfFirst = 0
    /// Bytes that wait.
    private(set) var count = 0
    /// Of what was taken back: how many marks, and how many bytes in blocks, are still there.
    private var voidMarks = 0
    private var voidBytes = 0

    /// What a write takes beside its bytes: its promise and its mark, on a 64-bit machine 185 bytes as measured with a
    /// million of them.
    static var weightOfWrite: Int { 192 }
    /// What all that waits takes of memory, nearly: the bytes, and the bookkeeping of the writes that they belong to.
    var weight: Int { count + marks.numbers.count * Self.weightOfWrite }
    /// How many writes wait.
    var writes: Int { marks.numbers.count - voidMarks }

    /// Blocks smaller than this are filled up before another is begun.
    static var coalesceLimit: Int { 16_384 }
    /// IOV_MAX: more pieces the kernel refuses.
    private static var mostPieces: Int { 1024 }
    /// No more than this and one block are offered at once.
    private static var mostBytes: Int { 256 << 10 }

    var isEmpty: Bool { marks.isEmpty }

    /// The promises of the writes that wait.
    var promises: [PromiseCore] { marks.numbers.compactMap { marks[$0].promise } }

    // MARK: Coming

    /// Queues `bytes` from `start` on; the promise is settled by whoever takes it out again.
    func append(_ bytes: [UInt8], from start: Int = 0, _ promise: WritePromise?) {
        let count = bytes.count - start
        if count == 0 { return note(promise, 0, in: 0) }
        if count <= Self.coalesceLimit {
            return bytes.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[start...]), start > 0, promise) }
        }
        if blocks.isEmpty {
            // Where the kernel has begun with it, it goes on there.
            offset = start
            appendBlock(bytes)
            note(promise, count, in: 1, at: start, isBegun: start > 0)
        } else {
            appendBlock(start == 0 ? bytes : Array(bytes[start...]))
            note(promise, count, in: 1, isBegun: start > 0)
        }
    }

    /// The same for bytes that are only lent: they are copied.
    func append(_ bytes: UnsafeRawBufferPointer, _ isBegun: Bool, _ promise: WritePromise?) {
        if bytes.isEmpty { return note(promise, 0, in: 0) }
        if bytes.count > Self.coalesceLimit {
            appendBlock([UInt8](bytes))
            return note(promise, bytes.count, in: 1, isBegun: isBegun)
        }
        let place = join(bytes)
        note(promise, bytes.count, in: 1, at: place, isBegun: isBegun)
    }

    /// The same for one write of several buffers, in blocks of its own.
    func append(_ buffers: [[UInt8]], _ promise: WritePromise) {
        let first = blocks.end
        var count = 0
        var small: [UInt8] = []
        func close() {
            if small.isEmpty { return }
            appendBlock(small)
            small = []
        }
        for buffer in buffers where !buffer.isEmpty {
            count += buffer.count
            if small.count + buffer.count > Self.coalesceLimit { close() }
            if buffer.count > Self.coalesceLimit { appendBlock(buffer) } else { small += buffer }
        }
        close()
        note(promise, count, in: blocks.end - first)
    }

    /// Adds to the last block, if more may come there; answers where.
    private func join(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !blocks.isEmpty {
            let last = blocks.end - 1
            let place = blocks[last].bytes.count
            if blocks[last].isShared && place + bytes.count <= Self.coalesceLimit {
                blocks[last].bytes.append(contentsOf: bytes)
                blocks[last].marks = blocks[last].marks.lowerBound...marks.end
                return place
            }
        }
        appendBlock([UInt8](bytes), isShared: true)
        return 0
    }

    private func appendBlock(_ bytes: [UInt8], isShared: Bool = false) {
        blocks.append(Block(bytes: bytes, isShared: isShared, marks: marks.end...marks.end))
    }

    private func note(
        _ promise: WritePromise?, _ count: Int, in blocks: Int, at offset: Int = 0, isBegun: Bool = false
    ) {
        promise?.number = marks.end
        let first = self.blocks.end - blocks
        marks.append(
            PendingWrite(promise: promise, count: count, isBegun: isBegun, block: first, blocks: blocks, offset: offset)
        )
        self.count += count
    }

    // MARK: Going

    /// Calls `body` with what to send next, in at most 1024 pieces, and answers what that answers, and how many bytes
    /// they were. Not at all if only the promises of empty writes are left.
    func withIOVectors(_ body: (UnsafeBufferPointer<iovec>) -> Int) -> (result: Int, offered: Int) {
        dropFinishedBlocks()
        if blocks.isEmpty { return (0, 0) }
        let most = min(blocks.numbers.count, Self.mostPieces)
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: most) { pieces in
            var used = 0
            var offered = 0
            for number in blocks.numbers {
                if used == most || offered >= Self.mostBytes { break }
                if blocks[number].needsCompaction { clean(number) }
                let skipped = number == blocks.start ? offset : 0
                let count = blocks[number].bytes.count - skipped
                if count == 0 { continue }
                // The address is good until the call returns: the bytes of an array lie in its one object, the block
                // keeps that alive, and nobody changes it meanwhile.
                let address = blocks[number].bytes.withUnsafeBytes { $0.baseAddress! + skipped }
                let piece = iovec(iov_base: UnsafeMutableRawPointer(mutating: address), iov_len: count)
                (pieces.baseAddress! + used).initialize(to: piece)
                used += 1
                offered += count
            }
            let filled = UnsafeBufferPointer(rebasing: pieces[..<used])
            return (used == 0 ? 0 : body(filled), offered)
        }
    }

    /// The kernel has taken `count` bytes of what `withIOVectors` showed. Answers the promises of the writes that are all
    /// gone.
    func advance(_ count: Int) -> [PromiseCore] {
        self.count -= count
        offset += count
        dropFinishedBlocks()
        var finished: [PromiseCore] = []
        sentOfFirst += count
        while !marks.isEmpty, marks[marks.start].count <= sentOfFirst {
            let mark = marks.removeFirst()
            sentOfFirst -= mark.count
            if mark.isVoid { voidMarks -= 1 }
            if let promise = mark.promise { finished.append(promise) }
        }
        return finished
    }

    private func dropFinishedBlocks() {
        while !blocks.isEmpty, !blocks[blocks.start].needsCompaction, blocks[blocks.start].bytes.count <= offset {
            offset -= blocks.removeFirst().bytes.count
        }
        if blocks.isEmpty { offset = 0 }
    }

    // MARK: Taking back

    /// Takes a write back. False if the kernel has some of its bytes: the stream cannot go on without the rest.
    func withdraw(_ promise: WritePromise) -> Bool {
        let number = promise.number
        guard marks.numbers.contains(number), marks[number].promise === promise else { return false }
        let mark = marks[number]
        let isBegun = mark.isBegun || number == marks.start && sentOfFirst > 0
        if isBegun { return false }
        marks[number].promise = nil
        marks[number].count = 0
        count -= mark.count
        for block in mark.block..<mark.block + mark.blocks {
            if blocks[block].isShared {
                blocks[block].void += mark.count
                voidBytes += mark.count
            } else {
                blocks[block].bytes = []
            }
        }
        voidMarks += 1
        while !marks.isEmpty, marks[marks.start].isVoid {
            _ = marks.removeFirst()
            voidMarks -= 1
        }
        if voidMarks >= 64 && voidMarks > writes || voidBytes >= 65536 && voidBytes > count { compact() }
        return true
    }

    /// Leaves nothing of what was taken back. Done when that outweighs the rest, so that writes which come and are taken back
    /// behind one that is stuck take no memory, at a constant cost each.
    private func compact() {
        for number in blocks.numbers where blocks[number].needsCompaction { clean(number) }
        var newBlocks = IndexedQueue<Block>()
        // The new number of each block, or of the next that stays; likewise of the marks.
        var blockNumbers: [Int] = []
        for number in blocks.numbers {
            blockNumbers.append(newBlocks.end)
            if !blocks[number].bytes.isEmpty { newBlocks.append(blocks[number]) }
        }
        blockNumbers.append(newBlocks.end)
        var newMarks = IndexedQueue<PendingWrite>()
        var markNumbers: [Int] = []
        for number in marks.numbers {
            markNumbers.append(newMarks.end)
            var mark = marks[number]
            if mark.isVoid { continue }
            mark.promise?.number = newMarks.end
            // A write that is partly sent may have lost its first blocks. It is not taken back, and they are not asked for.
            mark.block = mark.block < blocks.start ? -1 : blockNumbers[mark.block - blocks.start]
            newMarks.append(mark)
        }
        markNumbers.append(newMarks.end)
        for number in newBlocks.numbers {
            let old = newBlocks[number].marks
            let first = markNumbers[max(old.lowerBound - marks.start, 0)]
            let end = markNumbers[max(old.upperBound + 1 - marks.start, 0)]
            newBlocks[number].marks = first...max(end - 1, first)
        }
        blocks = newBlocks
        marks = newMarks
        voidMarks = 0
    }

    /// Cuts out of a shared block what was taken back, and what is gone.
    private func clean(_ number: Int) {
        let old = blocks[number].bytes
        let isFirst = number == blocks.start
        var kept: [UInt8] = []
        for place in marks.numbers.clamped(to: Range(blocks[number].marks)) where marks[place].count > 0 {
            guard marks[place].block == number else { continue }
            let gone = place == marks.start ? sentOfFirst : 0
            let start = marks[place].offset + gone
            marks[place].offset = kept.count - gone
            kept += old[start..<start + marks[place].count - gone]
        }
        blocks[number].bytes = kept
        voidBytes -= blocks[number].void
        blocks[number].void = 0
        if isFirst { offset = 0 }
    }
}
