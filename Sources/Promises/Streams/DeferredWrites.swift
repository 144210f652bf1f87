/// Writes that a filter has not transformed yet: it needs input first, or is being called.
struct DeferredWrites {
    typealias Write = (bytes: [UInt8], promise: PromiseCore)

    // The writes from `first` on.
    private var writes: [Write?] = []
    private var first = 0
    private(set) var byteCount = 0

    var isEmpty: Bool { first == writes.count }
    var count: Int { writes.count - first }
    /// The approximate memory that they take.
    var weight: Int { byteCount + count * WriteQueue.weightOfWrite }

    mutating func append(_ write: Write) {
        byteCount += write.bytes.count
        writes.append(write)
    }

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
