import Promises

/// Writes that a filter has not transformed yet, because it needs input first or is being called.
struct DeferredWrites {
    typealias Write = (bytes: [UInt8], promise: PromiseCore)

    private var writes = IndexedQueue<Write>()
    private(set) var byteCount = 0

    var isEmpty: Bool { writes.isEmpty }
    var count: Int { writes.numbers.count }
    var weight: Int { byteCount + count * WriteQueue.weightOfWrite }

    mutating func append(_ write: Write) {
        byteCount += write.bytes.count
        writes.append(write)
    }

    mutating func insertFirst(_ write: Write) {
        byteCount += write.bytes.count
        writes.insertFirst(write)
    }

    mutating func takeFirst() -> Write? {
        if isEmpty { return nil }
        let next = writes.removeFirst()
        byteCount -= next.bytes.count
        if isEmpty { self = DeferredWrites() }
        return next
    }

    mutating func takeAll() -> [Write] {
        let taken = writes.numbers.map { writes[$0] }
        self = DeferredWrites()
        return taken
    }
}
