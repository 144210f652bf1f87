/// A growing array for one thread's data structure, without checks for uniqueness and bounds. With `Array`, starting
/// and cancelling a timer ran a dozen of these checks.
struct UncheckedArray<Element>: ~Copyable {
    // Owned; freed in deinit. The first `count` elements are initialised. Every index is below `count`; only a bug in
    // the owner could violate that, and debug builds check it.
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

    /// Returns the element's address, valid until the array grows.
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
