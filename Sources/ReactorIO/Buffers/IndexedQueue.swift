/// A queue whose elements keep the number assigned when they were appended.
struct IndexedQueue<Element> {
    private var elements: ContiguousArray<Element?> = []
    private var head = 0
    /// The number of the first element or, if the queue is empty, of the next one to be appended.
    private(set) var start = 0
    var end: Int { start + elements.count - head }

    var isEmpty: Bool { head == elements.count }
    var numbers: Range<Int> { start..<end }

    subscript(number: Int) -> Element {
        get { elements[head + number - start]! }
        _modify { yield &elements[head + number - start]! }
    }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func insertFirst(_ element: Element) {
        start -= 1
        if head == 0 { return elements.insert(element, at: 0) }
        head -= 1
        elements[head] = element
    }

    /// Removes the first element, which must exist.
    mutating func removeFirst() -> Element {
        let first = elements[head]!
        elements[head] = nil
        head += 1
        start += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 64, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }
}
