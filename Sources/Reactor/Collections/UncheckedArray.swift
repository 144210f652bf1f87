/// A growing array, owned by one thread's data structure. It omits the uniqueness and bounds checks, of which starting
/// and cancelling a timer made a dozen.
struct UncheckedArray<Element>: ~Copyable {
    // Owned: freed in deinit. The first `count` elements are initialised. An index is always below `count`, which only
    // the bookkeeping of the owner can violate; debug builds check it.
    private var elements: UnsafeMutablePointer<Element>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 16) {
        elements = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        elements.deinitialize(count: count)
        elements.deallocate()
    }

    @inline(__always) var isEmpty: Bool { count == 0 }

    @inline(__always)
    subscript(index: Int) -> Element {
        unsafeAddress {
            assert(index >= 0 && index < count)
            return UnsafePointer(elements + index)
        }
        unsafeMutableAddress {
            assert(index >= 0 && index < count)
            return elements + index
        }
    }

    /// The address of the element, valid until the array grows.
    @inline(__always)
    mutating func address(of index: Int) -> UnsafeMutablePointer<Element> {
        assert(index >= 0 && index < count)
        return elements + index
    }

    @inline(__always)
    mutating func append(_ element: consuming Element) {
        if count == capacity { grow() }
        (elements + count).initialize(to: element)
        count &+= 1
    }

    @inline(__always)
    mutating func removeLast() -> Element {
        assert(count > 0)
        count &-= 1
        return (elements + count).move()
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        larger.moveInitialize(from: elements, count: count)
        elements.deallocate()
        elements = larger
        capacity *= 2
    }
}
