import Reactor
import Synchronization

/// The result of a combinator that comes by its sources one after the other: only so many are under way at a time.
///
/// Where sources come from is the user's code, which is why they are not taken inline where others settle, as a
/// `Gathering` would, but by ordinary jobs of the loop: so they are at home, never in the midst of anything, and a hundred
/// thousand sources that have all settled take their turns with everybody else.
///
/// There is one node for each source that is under way, and nothing for those that have settled but what `Belt` keeps.
// @unchecked: used on its loop's thread only, but for what Core itself allows others.
@usableFromInline
final class Conveyor: Gatherer, @unchecked Sendable {
    /// What is specialised of it: closures over the values.
    @usableFromInline
    struct Belt {
        /// The next source, `nil` after the last. The user's code: it may do anything, drive the loop among others.
        let next: () throws -> Core?
        /// Puts the outcome of the source with that number away.
        let keep: (Int, Source<Void>) -> Void
        /// Fulfills the core with what has been put away.
        let complete: (Core) -> Void

        @usableFromInline
        init(
            next: @escaping () throws -> Core?, keep: @escaping (Int, Source<Void>) -> Void,
            complete: @escaping (Core) -> Void
        ) {
            self.next = next
            self.keep = keep
            self.complete = complete
        }
    }

    /// Until the result settles.
    private var belt: Belt?
    private let limit: Int
    private let keepsRejections: Bool
    /// The nodes of the sources that are under way, by their numbers. Not owned: a node stands in its source's list, or is on its
    /// way here; either holds it.
    private var nodes: [Int: Unmanaged<SourceNode>] = [:]
    /// How many sources have come.
    private var taken = 0
    /// How many of them nobody will ever settle. They keep their places.
    private var lost = 0
    /// There are no more.
    private var isDry = false
    private var isTaking = false
    private var wasCancelled = false

    /// - Parameter limit: how many at a time; one at least.
    @usableFromInline
    init(_ limit: Int, keepsRejections: Bool, _ belt: Belt, code: @escaping (Core, Phase) -> Void) {
        self.limit = limit
        self.keepsRejections = keepsRejections
        self.belt = belt
        super.init(code: code)
    }

    /// Takes the first sources.
    @usableFromInline
    func start() {
        take()
        lose()
    }

    /// Takes sources for as long as there is room for them.
    private func take() {
        // If a source settles because the user's code drives the loop, its place is taken once that returns.
        guard !isTaking else { return }
        isTaking = true
        // A copy: the user's code may cancel the result.
        while !isDry, nodes.count + lost < limit, let belt = openBelt {
            let source: Core
            do {
                guard let next = try belt.next() else {
                    isDry = true
                    break
                }
                source = next
            } catch { source = Core(error: error, origin: nil) }
            if wasCancelled {
                source.cancelUnlessWanted()
                break
            }
            let node = SourceNode(of: self, taken)
            nodes[taken] = .passUnretained(node)
            taken += 1
            begin()
            source.attach(node)
        }
        isTaking = false
        if isDry && nodes.isEmpty && lost == 0, let belt = openBelt {
            belt.complete(self)
            self.belt = nil
        }
    }

    private var openBelt: Belt? { isOpen && !wasCancelled ? belt : nil }

    override func settled(_ index: Int, _ source: Unmanaged<Core>, _ kind: UInt) {
        nodes[index] = nil
        defer { lose() }
        guard let belt = openBelt else { return source.release() }
        guard kind == State.fulfilled || keepsRejections else {
            source._withUnsafeGuaranteedRef { storeError($0.error, $0.origin) }
            source.release()
            retain()
            settle(State.rejected)
            self.belt = nil
            return
        }
        belt.keep(index, Source(source, isFulfilled: kind == State.fulfilled))
        source.release()
        take()
    }

    override func forsaken(_ index: Int) {
        nodes[index] = nil
        lost += 1
        lose()
    }

    override func letGo() { belt = nil }

    /// Cancels what is under way, as far as nobody else waits for it, and takes no more.
    override func stopProducing() -> Bool {
        wasCancelled = true
        for index in nodes.keys.sorted() {
            // What is let go here may run the user's code, and that the loop.
            guard let node = nodes.removeValue(forKey: index) else { continue }
            node.takeUnretainedValue().leave()?.cancelInTurn()
        }
        belt = nil
        return true
    }
}
