import Promises
import ReactorLibc

/// A connection's bytes that the kernel has not taken, and the promises of their writes.
///
/// Each write has one entry, or one for each piece. A small write is copied. A large one keeps its own array, or shares
/// its memory.
///
/// Entries are numbered in order, and a promise knows its number, so a withdrawal takes constant time.
final class WriteQueue {
    private struct Entry {
        /// Empty if `kept` has the bytes.
        var bytes: [UInt8] = []
        var kept: KeptBlock?
        /// The number of leading bytes that have been sent.
        var sent = 0
        /// The promise of a write, at its last piece.
        var promise: PromiseCore?
        /// The number of pieces of the same write before this one.
        var piecesBefore: Int32 = 0
        /// True for a write's last piece, unless withdrawn.
        var endsWrite = true
        /// True when the stream cannot continue without the entry.
        var isBegun = false
        /// True for output of a filter that belongs to no write.
        var isOwnOutput = false

        var count: Int { (kept?.bytes.count ?? bytes.count) - sent }
        var memory: Int { kept?.memory ?? bytes.capacity }
        var isWithdrawn: Bool { !endsWrite && count == 0 }

        /// The bytes to send. Valid as long as the queue has the entry, which retains their memory.
        var piece: UnsafeRawBufferPointer {
            let all = kept?.bytes.withUnsafeBytes(\.self) ?? bytes.withUnsafeBytes(\.self)
            return UnsafeRawBufferPointer(rebasing: all[sent...])
        }
    }

    private var entries = IndexedQueue<Entry>()
    private var blockMemory = 0
    /// The part of `blockMemory` that a budget counts separately, since others may share it.
    private(set) var sharedMemory = 0
    private(set) var count = 0
    private(set) var ownOutput = 0
    private(set) var writes = 0
    /// The number of withdrawn entries since the last `compact`.
    private var withdrawn = 0

    /// The memory of a write's promise and entry: 180 bytes on a 64-bit machine, measured with a million writes.
    static var weightOfWrite: Int { 192 }
    /// The approximate memory of all queued bytes and writes.
    var weight: Int { count + writes * Self.weightOfWrite }
    /// Like `weight`, including unused room, bytes that the kernel has taken, and an entry for each piece.
    var memory: Int { blockMemory + entries.numbers.count * Self.weightOfWrite }

    /// Larger writes keep their array. Bytes without a promise are joined up to this size.
    static var coalesceLimit: Int { 16_384 }
    /// IOV_MAX: the kernel refuses more pieces in a call.
    static var mostPieces: Int { 1024 }
    /// The number of bytes at which a call offers no further entries.
    private static var mostBytes: Int { 256 << 10 }

    var isEmpty: Bool { entries.isEmpty }

    func sum(_ body: (SharedBytes) -> Int) -> Int {
        entries.numbers.reduce(0) { sum, number in sum + (entries[number].kept.map { body($0.bytes) } ?? 0) }
    }

    var promises: [PromiseCore] { entries.numbers.compactMap { entries[$0].promise } }

    // MARK: Appending

    /// Queues a write. The caller of `advance` settles the promise.
    /// - Parameters:
    ///   - array: the array that contains `bytes`, which the queue may keep instead of a copy.
    ///   - start: the number of bytes that have been sent.
    ///   - isFinal: true if the rest of the stream depends on the bytes, as on a filter's output, so that the write
    ///     cannot be withdrawn.
    func append(
        _ bytes: UnsafeRawBufferPointer, of array: [UInt8]?, from start: Int = 0, isFinal: Bool = false,
        _ promise: PromiseCore?
    ) {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
        let isOwnOutput = promise == nil && isFinal
        if promise == nil && extendLast(by: rest, isOwnOutput) { return }
        var entry = Entry(promise: promise, isBegun: start > 0 || isFinal && !rest.isEmpty, isOwnOutput: isOwnOutput)
        if let array, rest.count > Self.coalesceLimit {
            (entry.bytes, entry.sent) = (array, start)
        } else {
            entry.bytes = [UInt8](rest)
        }
        append(entry)
    }

    func append(_ bytes: [UInt8], from start: Int = 0, isFinal: Bool = false, _ promise: PromiseCore?) {
        bytes.withUnsafeBytes { append($0, of: bytes, from: start, isFinal: isFinal, promise) }
    }

    /// Queues the rest of several pieces as one write.
    /// - Parameters:
    ///   - sent: the number of their bytes that the kernel has taken.
    ///   - budget: counts the memory of the pieces that are not copied.
    func append(_ pieces: [SharedBytes], from sent: Int, _ promise: PromiseCore, _ budget: MemoryBudget?) {
        var left = sent
        var rest = pieces.map { piece in
            let start = min(left, piece.count)
            left -= start
            return piece[start..<piece.count]
        }
        rest.removeAll(where: \.isEmpty)
        if rest.isEmpty { return append(Entry(promise: promise)) }
        for (index, piece) in rest.enumerated() {
            let isLast = index == rest.count - 1
            var entry = Entry(
                promise: isLast ? promise : nil, piecesBefore: Int32(index), endsWrite: isLast, isBegun: sent > 0)
            if piece.count < SharedBytes.leastKept {
                entry.bytes = [UInt8](piece)
            } else {
                entry.kept = KeptBlock(piece, budget)
            }
            append(entry)
        }
    }

    private func append(_ entry: Entry) {
        entry.promise?.queuedWrite.pointee.number = entries.end
        count += entry.count
        if entry.isOwnOutput { ownOutput += entry.count }
        blockMemory += entry.memory
        if let kept = entry.kept, kept.isCounted { sharedMemory += kept.memory }
        if entry.endsWrite { writes += 1 }
        entries.append(entry)
    }

    /// - Returns: false if the last entry has a promise, or no room.
    private func extendLast(by bytes: UnsafeRawBufferPointer, _ isOwnOutput: Bool) -> Bool {
        if entries.isEmpty { return false }
        let last = entries.end - 1
        guard entries[last].promise == nil, entries[last].endsWrite, entries[last].kept == nil,
            entries[last].isOwnOutput == isOwnOutput, entries[last].bytes.count + bytes.count <= Self.coalesceLimit
        else { return false }
        blockMemory -= entries[last].memory
        entries[last].bytes.append(contentsOf: bytes)
        blockMemory += entries[last].memory
        count += bytes.count
        if isOwnOutput { ownOutput += bytes.count }
        return true
    }

    /// Takes the promises of writes whose bytes are still sent.
    func takePromises() -> [PromiseCore] {
        entries.numbers.compactMap { entries[$0].promise.take() }
    }

    // MARK: Sending

    /// Calls `body` with the bytes to send next, in at most 1024 pieces, unless only empty writes are left.
    /// - Returns: the result of `body`, and the number of bytes that it was offered.
    func withIOVectors(_ body: (UnsafeBufferPointer<iovec>) -> Int) -> (result: Int, offered: Int) {
        let most = min(entries.numbers.count, Self.mostPieces)
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: most) { pieces in
            var used = 0
            var offered = 0
            for number in entries.numbers {
                if used == most || offered >= Self.mostBytes { break }
                // Valid until `body` returns, because it does not change the queue.
                let piece = entries[number].piece
                if piece.isEmpty { continue }
                (pieces.baseAddress! + used).initialize(to: iovec(of: piece))
                used += 1
                offered += piece.count
            }
            return (used == 0 ? 0 : body(UnsafeBufferPointer(rebasing: pieces[..<used])), offered)
        }
    }

    /// - Returns: the promises of the writes that have been sent completely.
    func advance(_ count: Int) -> [PromiseCore] {
        self.count -= count
        var finished: [PromiseCore] = []
        var left = count
        while !entries.isEmpty, entries[entries.start].count <= left {
            let entry = entries.removeFirst()
            left -= entry.count
            forget(entry)
            if let promise = entry.promise { finished.append(promise) }
        }
        if left > 0 {
            entries[entries.start].sent += left
            entries[entries.start].isBegun = true
            if entries[entries.start].isOwnOutput { ownOutput -= left }
        }
        return finished
    }

    private func forget(_ entry: Entry) {
        if entry.endsWrite { writes -= 1 }
        if entry.isOwnOutput { ownOutput -= entry.count }
        blockMemory -= entry.memory
        if let kept = entry.kept, kept.isCounted { sharedMemory -= kept.memory }
    }

    // MARK: Withdrawing

    /// - Returns: false if the kernel has taken some of the bytes: the stream cannot continue without the rest.
    func withdraw(_ promise: PromiseCore) -> Bool {
        let number = promise.queuedWrite.pointee.number
        guard entries.numbers.contains(number), entries[number].promise === promise else { return false }
        let first = number - Int(entries[number].piecesBefore)
        // Its first pieces may have been sent.
        if first < entries.start || entries[first].isBegun { return false }
        // Released last, because the owner of shared memory is user code.
        let removed = (first...number).map { entries[$0] }
        for (place, entry) in zip(first..., removed) {
            count -= entry.count
            forget(entry)
            entries[place] = Entry(endsWrite: false)
        }
        withdrawn += number - first + 1
        while !entries.isEmpty, entries[entries.start].isWithdrawn { _ = entries.removeFirst() }
        if withdrawn >= 64 && withdrawn * 2 > entries.numbers.count { compact() }
        return withExtendedLifetime(removed) { true }
    }

    /// Removes the entries of withdrawn writes. Called when they may outweigh the rest, so that writes queued and
    /// withdrawn while the peer does not read take no memory, at a constant cost for each.
    private func compact() {
        let old = entries
        (entries, withdrawn) = (IndexedQueue(), 0)
        for number in old.numbers where !old[number].isWithdrawn {
            old[number].promise?.queuedWrite.pointee.number = entries.end
            entries.append(old[number])
        }
    }
}

/// Shared memory, or a part of it, that waits in a queue. Released with its entry.
private final class KeptBlock {
    let bytes: SharedBytes
    private let budget: MemoryBudget?
    let memory: Int
    var isCounted: Bool { budget != nil }

    init(_ bytes: SharedBytes, _ budget: MemoryBudget?) {
        self.bytes = bytes
        self.budget = budget
        memory = bytes.count
        budget?.hold(bytes)
    }

    deinit { budget?.release(bytes) }
}
