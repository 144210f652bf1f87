import Synchronization

@testable import PromisesTestSupport

/// A thread, or its equivalent, on which something is done to a promise.
enum StormPlace: Equatable {
    case now, here, loop(Int), pool, task
}

/// The thread of an expression, which has the seed.
struct StormSite {
    let storm: OperatorStorm
    let seed: UInt64
    let home = EventLoop.current.remote

    /// For a handler on this thread, unless told otherwise.
    func witness(_ place: StormPlace? = .here, mayRepeat: Bool = false) -> StormWitness {
        StormWitness(self, place, mayRepeat)
    }

    func check(_ result: Result<Int, any Error>, in possible: Set<Outcome>, _ what: @autoclosure () -> String) {
        let outcome = Outcome(result)
        if !possible.contains(outcome) { storm.complain("\(outcome) is not among \(possible); \(what())", seed) }
    }
}

/// Held by each handler of the operator storm: checks that it is called at most once, in the right place, and released.
final class StormWitness: Sendable {
    private let site: StormSite
    private let place: StormPlace?
    private let mayRepeat: Bool
    private let calls = Atomic(0)

    init(_ site: StormSite, _ place: StormPlace?, _ mayRepeat: Bool) {
        (self.site, self.place, self.mayRepeat) = (site, place, mayRepeat)
        site.storm.witnesses.add()
    }

    deinit { site.storm.ended.add() }

    func call() {
        if calls.add(1, ordering: .relaxed).newValue > 1 && !mayRepeat {
            site.storm.complain("a handler has run twice", site.seed)
        }
        let (here, loops) = (EventLoop.current.remote, site.storm.loops)
        let isThere =
            switch place {
            case .here: here == site.home
            case .loop(let index): here == loops[index]
            case .pool: !loops.contains(here)
            default: true
            }
        if !isThere { site.storm.complain("a handler for \(place!) has run elsewhere", site.seed) }
    }
}

/// Promises of expressions, for others to use.
final class StormExchange: Sendable {
    struct Entry: Sendable {
        let promise: Promise<Int>
        let possible: Set<Outcome>
    }

    private static let blank = Entry(promise: .value(1), possible: [.value(1)])
    private let slots = Shared(Array(repeating: blank, count: 16))
    private let puts = StormCount()

    var entries: [Entry] { slots.value }

    func put(_ promise: Promise<Int>, _ possible: Set<Outcome>) {
        let entry = Entry(promise: promise, possible: possible)
        let index = puts.add() % 16
        // The old one is released outside the lock.
        _ = slots.change { slots in
            defer { slots[index] = entry }
            return slots[index]
        }
    }

    func clear() { for _ in 0..<16 { put(.value(1), [.value(1)]) } }
}

/// A number that any thread counts up.
final class StormCount: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .relaxed) }

    @discardableResult
    func add() -> Int { number.add(1, ordering: .relaxed).newValue }
}
