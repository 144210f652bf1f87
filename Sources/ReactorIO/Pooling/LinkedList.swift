struct Links<Node: AnyObject> {
    fileprivate var previous: Node?
    fileprivate var next: Node?
    fileprivate var isMember = false
}

protocol Linked: AnyObject {
    associatedtype List
    subscript(list: List) -> Links<Self> { get set }
}

/// A doubly linked list in insertion order. Cancelled requests and lost idle connections are removed from its middle,
/// where an array would move elements.
final class LinkedList<Node: Linked> {
    private let list: Node.List

    // `@exclusivity(unchecked)`: one thread, and no foreign code runs during a change.
    @exclusivity(unchecked) private(set) var first: Node?
    @exclusivity(unchecked) private(set) var last: Node?
    @exclusivity(unchecked) private(set) var count = 0

    init(_ list: Node.List) { self.list = list }

    var isEmpty: Bool { count == 0 }

    var all: [Node] {
        guard let first else { return [] }
        return Array(sequence(first: first) { [list] in $0[list].next })
    }

    // Neighbours retain each other.
    deinit { while let first { remove(first) } }

    /// Appends `node`, which must not be a member.
    func append(_ node: Node) {
        node[list] = Links(previous: last, isMember: true)
        if let last { last[list].next = node } else { first = node }
        last = node
        count += 1
    }

    /// - Returns: true if `node` was a member.
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
