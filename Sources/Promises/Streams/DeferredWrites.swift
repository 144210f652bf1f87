/// Writes that a filter has not transformed yet: it needs input first, or is being called.
struct DeferredWrites {
    typealias Write = (bytes: [UInt8], promise: PromiseCore)

    // The writes from `first` on.
    private var writes: [Write?] = []
    private var first = 0
    /// The number of their bytes.
    private(set) var byteCount = 0

    var isEmpty: Bool { first == writes.count }
    var count: Int { writes.count - first }
    /// The approximate memory that they take.
    var weight: Int { byteCount + count * WriteQueue.weightOfWrite }

    mutating func append(_ write: Write) {
        byteCount += write.bytes.count
        writes.append(write)
    }

    /// Inserts a write before the others.
    mutating func insertFirst(_ write: Write) {
        byteCount += write.bytes.count
        if first == 0 { return writes.insert(write, at: 0) }
        first -= 1
        writes[first] = write
    }

    mutating func takeFirst() -> Write? {
        guard !isEmpty, let next = writes[first].take() else { return nil }
        byteCount -= next.bytes.count
        first += 1
        if isEmpty { self = DeferredWrites() }
        return next
    }

    mutating func takeAll() -> [Write] {
        let taken = writes.compactMap(\.self)
        self = DeferredWrites()
        return taken
    }
}

/// Output of a filter that belongs to no write, such as answers to pings, and that the kernel has not taken.
struct OwnOutput {
    /// The end of each piece in the sent bytes, and its memory.
    private var pieces = IndexedQueue<(end: Int, weight: Int)>()
    private var weight = 0

    /// Notes that the last `count` bytes up to `end` in the sent bytes belong to no write.
    mutating func append(_ count: Int, end: Int) {
        // Many small outputs take more memory for their entries than for their bytes.
        let weight = count + WriteQueue.weightOfWrite
        pieces.append((end, weight))
        self.weight += weight
    }

    /// The approximate memory of the output after the first `sent` bytes.
    mutating func weight(after sent: Int) -> Int {
        while !pieces.isEmpty, pieces[pieces.start].end <= sent { weight -= pieces.removeFirst().weight }
        return weight
    }
}
