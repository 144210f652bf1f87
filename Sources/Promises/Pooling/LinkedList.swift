/// The neighbours of an object in one `LinkedList`.
struct Links<Node: AnyObject> {
    fileprivate var previous: Node?
    fileprivate var next: Node?
    fileprivate var isMember = false
}

/// What may be in lists, in each by other links.
protocol Linked: AnyObject {
    associatedtype List
    subscript(list: List) -> Links<Self> { get set }
}

/// Objects in the order in which they were appended, of which any one is removed in constant time: a doubly linked list.
///
/// Requests leave a queue from its middle when they are cancelled, and idle connections when their peers go: an array
/// would move its elements each time.
final class LinkedList<Node: Linked> {
    private let list: Node.List

    // `@exclusivity(unchecked)`: one thread, and no foreign code runs while they are changed.
    @exclusivity(unchecked) private(set) var first: Node?
    @exclusivity(unchecked) private(set) var last: Node?
    @exclusivity(unchecked) private(set) var count = 0

    init(_ list: Node.List) { self.list = list }

    var isEmpty: Bool { count == 0 }

    /// All members, in their order.
    var all: [Node] {
        guard let first else { return [] }
        return Array(sequence(first: first) { [list] in $0[list].next })
    }

    // Neighbours retain each other.
    deinit { while let first { remove(first) } }

    /// Adds `node`, which must not be a member, at the end.
    func append(_ node: Node) {
        node[list] = Links(previous: last, isMember: true)
        if let last { last[list].next = node } else { first = node }
        last = node
        count += 1
    }

    /// - Returns: whether `node` was a member.
    @discardableResult
    func remove(_ node: Node) -> Bool {
        let links = node[list]
        guard links.isMember else { return false }
        node[list] = Links()
        if let previous = links.previous { previous[list].next = links.next } else { first = links.next }
        if let next = links.next { next[list].previous = links.previous } else { last = links.previous }
        count -= 1
        return true
    }
}
