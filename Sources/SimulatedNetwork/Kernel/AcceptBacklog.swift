/// A listening socket's connections that no program has accepted.
struct AcceptBacklog<Socket> {
    var limit: Int
    private var waiting: [Socket] = []

    init(limit: Int) { self.limit = max(limit, 0) }

    var isEmpty: Bool { waiting.isEmpty }
    /// As in the kernel, one more than the limit fits.
    var isFull: Bool { waiting.count > limit }

    mutating func add(_ socket: Socket) { waiting.append(socket) }
    mutating func take() -> Socket { waiting.removeFirst() }
    mutating func takeAll() -> [Socket] {
        defer { waiting = [] }
        return waiting
    }
}
