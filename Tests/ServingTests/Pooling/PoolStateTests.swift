@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

private enum Step: Equatable {
    case make(Int, PoolKey), cancelMake(Int), lend(Int, Int), check(Int, Int), park(Int), close(Int), abort(Int)
    case reject(Int, String)
}

/// A pool's state whose resources and requests are numbers.
private final class Numbers {
    let state: PoolState
    private var members: [Int: PoolMember] = [:]
    private var requests: [Int: PoolRequest] = [:]
    var now = LoopInstant(nanoseconds: 0)

    init(_ limits: PoolLimits) { state = PoolState(limits) }

    private func steps() -> [Step] {
        var steps: [Step] = []
        while let action = state.actions.popFirst() {
            switch action {
            case .make(let member):
                members[member.number] = member
                steps.append(.make(member.number, member.line.key))
            case .cancelMake(let member): steps.append(.cancelMake(member.number))
            case .lend(let member, let request): steps.append(.lend(member.number, request.number))
            case .check(let member):
                if case .checked(let request) = member.use { steps.append(.check(member.number, request.number)) }
            case .park(let member): steps.append(.park(member.number))
            case .close(let member): steps.append(.close(member.number))
            case .abort(let member): steps.append(.abort(member.number))
            case .reject(let request, let error):
                let name = if case PoolError.tooManyWaiting = error { "tooManyWaiting" } else { "failed" }
                steps.append(.reject(request.number, name))
            }
        }
        return steps
    }

    func request(_ key: PoolKey) -> (Int, [Step]) {
        let request = state.request(key, at: now)
        requests[request.number] = request
        return (request.number, steps())
    }

    func cancel(_ request: Int) -> [Step] {
        if let request = requests[request] { state.cancel(request) }
        return steps()
    }

    private func after(_ member: Int, _ event: (PoolMember) -> Void) -> [Step] {
        if let member = members[member] { event(member) }
        return steps()
    }

    func didMake(_ member: Int) -> [Step] { after(member) { state.didMake($0, at: now) } }
    func makeDidFail(_ member: Int) -> [Step] { after(member) { state.makeDidFail($0, Flaw(member)) } }
    func didLose(_ member: Int) -> [Step] { after(member) { state.didLose($0) } }
    func didCheck(_ member: Int, isUsable: Bool) -> [Step] {
        after(member) { state.didCheck($0, isUsable: isUsable) }
    }
    func didReturn(_ member: Int, isReusable: Bool) -> [Step] {
        after(member) { state.didReturn($0, isReusable: isReusable, at: now) }
    }
    func expire() -> [Step] { now(state.expire(at: now)) }
    func drain() -> [Step] { now(state.drain()) }
    func close() -> [Step] { now(state.close()) }
    func abort() -> [Step] { now(state.abort()) }
    private func now(_: Void) -> [Step] { steps() }
}

/// The pool's state machine under random events: its invariants hold after each, and no request is stranded.
struct PoolStateTests {
    @Test(arguments: 0..<40) func invariantsHoldAndEveryRequestIsAnswered(seed: Int) {
        var run = Run(UInt64(seed))
        for _ in 0..<2_000 {
            run.step()
            run.check()
        }
        run.finish()
    }

    fileprivate struct Run {
        var state: Numbers
        var random: SplitMix64
        let keys: [PoolKey] = ["a", "b", "c"]
        var making: Set<Int> = []
        var checking: Set<Int> = []
        var parked: Set<Int> = []
        var leased: Set<Int> = []
        var ended: Set<Int> = []
        /// Unanswered requests, by their keys.
        var pending: [Int: PoolKey] = [:]

        init(_ seed: UInt64) {
            random = SplitMix64(seed)
            let limits = PoolLimits(
                perKey: 1 + random.below(4), total: random.once(in: 2) ? .max : 1 + random.below(6),
                waiting: random.once(in: 2) ? .max : 3,
                waitTimeout: random.once(in: 3) ? nil : .seconds(5),
                idleTimeout: random.once(in: 3) ? nil : .seconds(9),
                maxLifetime: random.once(in: 2) ? nil : .seconds(20))
            state = Numbers(limits)
        }

        mutating func step() {
            state.now = state.now.advanced(by: .milliseconds(random.below(400)))
            switch random.below(10) {
            case 0, 1, 2:
                let key = random.pick(keys)
                let (request, actions) = state.request(key)
                pending[request] = key
                apply(actions)
            case 3: if let member = pick(making) { apply(state.didMake(member)) }
            case 4:
                if let member = pick(making) {
                    making.remove(member)
                    ended.insert(member)
                    apply(state.makeDidFail(member))
                }
            case 5: if let member = pick(checking) { apply(state.didCheck(member, isUsable: !random.once(in: 3))) }
            case 6, 7:
                if let member = pick(leased) {
                    leased.remove(member)
                    parked.insert(member)
                    apply(state.didReturn(member, isReusable: !random.once(in: 4)))
                }
            case 8: if let member = pick(parked) { apply(state.didLose(member)) }
            default:
                if let request = pick(Set(pending.keys)), random.once(in: 2) {
                    pending[request] = nil
                    apply(state.cancel(request))
                } else {
                    apply(state.expire())
                }
            }
        }

        mutating func pick(_ set: Set<Int>) -> Int? { set.isEmpty ? nil : random.pick(set.sorted()) }

        mutating func apply(_ actions: [Step]) {
            for action in actions {
                switch action {
                case .make(let member, _): making.insert(member)
                case .cancelMake(let member):
                    expect(making.remove(member) != nil)
                    ended.insert(member)
                case .check(let member, let request):
                    expect(parked.remove(member) != nil && pending[request] != nil)
                    checking.insert(member)
                case .lend(let member, let request):
                    making.remove(member)
                    checking.remove(member)
                    expect(pending.removeValue(forKey: request) != nil, "a request is answered once")
                    expect(leased.insert(member).inserted)
                case .park(let member):
                    making.remove(member)
                    parked.insert(member)
                case .close(let member), .abort(let member):
                    let wasThere = [making, checking, parked, leased].contains { $0.contains(member) }
                    expect(wasThere && !ended.contains(member))
                    for set in [\Run.making, \.checking, \.parked, \.leased] { self[keyPath: set].remove(member) }
                    ended.insert(member)
                case .reject(let request, _):
                    expect(pending.removeValue(forKey: request) != nil, "a request is answered once")
                }
            }
        }

        func check() {
            let state = self.state.state
            expectEqual(state.members.count, making.count + checking.count + parked.count + leased.count)
            expect(state.makingCount == making.count && state.leasedCount == leased.count)
            expect(state.idle.count == parked.count && state.waiting.count == pending.count)
            expect(state.members.count <= state.limits.total)
            let isFull = state.members.count == state.limits.total && state.idle.isEmpty
            var checked = 0
            for line in keys.compactMap({ state.lines[$0] }) {
                expect(line.count <= state.limits.perKey)
                expect(line.idle.isEmpty || line.waiting.isEmpty, "a request waits while a resource is idle")
                let isMade = line.count == state.limits.perKey || line.making.count >= line.waiting.count
                expect(isFull || isMade, "nothing is made for a request")
                checked += line.checked
            }
            expectEqual(checked, checking.count)
        }

        /// If servers work, every request ends, and after a drain nothing is left.
        mutating func finish() {
            if random.once(in: 2) { apply(state.drain()) }
            var rounds = 0
            while !pending.isEmpty || !leased.isEmpty || !checking.isEmpty || !making.isEmpty {
                rounds += 1
                guard rounds < 100_000 else {
                    Issue.record("\(pending.count) requests are stranded")
                    return
                }
                if let member = pick(making) { apply(state.didMake(member)) }
                if let member = pick(checking) { apply(state.didCheck(member, isUsable: true)) }
                if let member = pick(leased) {
                    leased.remove(member)
                    parked.insert(member)
                    apply(state.didReturn(member, isReusable: true))
                }
                check()
            }
            apply(random.once(in: 2) ? state.close() : state.abort())
            expect(state.state.isFinished && state.state.lines.isEmpty)
        }
    }

    @Test func requestsAreServedInTheirOrderEvenAfterAFailedCheck() {
        let state = Numbers(PoolLimits(perKey: 2))
        let key = PoolKey.name("a")
        let (first, connects) = state.request(key)
        let (second, _) = state.request(key)
        expectEqual(connects, [.make(0, key)])
        expectEqual(state.didMake(0), [.lend(0, first)])
        expectEqual(state.didMake(1), [.lend(1, second)])
        let (third, _) = state.request(key)
        let (fourth, _) = state.request(key)
        let (fifth, _) = state.request(key)
        expectEqual(state.didReturn(0, isReusable: true), [.check(0, third)])
        expectEqual(state.didReturn(1, isReusable: true), [.check(1, fourth)])
        // Both fail, the later one first: the third request still comes before the fourth, and the fourth before the
        // fifth.
        expectEqual(state.didCheck(1, isUsable: false), [.close(1), .make(2, key)])
        expectEqual(state.didCheck(0, isUsable: false), [.close(0), .make(3, key)])
        expectEqual(state.didMake(3), [.lend(3, third)])
        expectEqual(state.didMake(2), [.lend(2, fourth)])
        expectEqual(state.didReturn(2, isReusable: false), [.close(2), .make(4, key)])
        expectEqual(state.didMake(4), [.lend(4, fifth)])
    }

    @Test func aDrainClosesWhatIsIdleAndACloseCancelsWhatIsMade() {
        let state = Numbers(PoolLimits(perKey: 1))
        _ = state.request(a)
        _ = state.didMake(0)
        expectEqual(state.didReturn(0, isReusable: true), [.park(0)])
        let (waiting, _) = state.request(.name("b"))
        expectEqual(state.drain(), [.close(0)])
        expectEqual(state.close(), [.reject(waiting, "failed"), .cancelMake(1)])
    }

    private let a = PoolKey.name("a")
    private let b = PoolKey.name("b")

    @Test func aPlaceThatIsFreedGoesToTheOldestRequestOfAllTargets() {
        let state = Numbers(PoolLimits(perKey: 2, total: 1))
        let (first, connect) = state.request(a)
        expectEqual(connect, [.make(0, a)])
        let (second, _) = state.request(b)
        let (third, none) = state.request(a)
        expect(none.isEmpty && state.didMake(0) == [.lend(0, first)])
        expectEqual(state.didReturn(0, isReusable: true), [.close(0), .make(1, b)], "b has waited longer")
        expectEqual(state.didMake(1), [.lend(1, second)])
        let (fourth, _) = state.request(b)
        expectEqual(state.didReturn(1, isReusable: false), [.close(1), .make(2, a)])
        expectEqual(state.makeDidFail(2), [.reject(third, "failed"), .make(3, b)])
        expectEqual(state.didMake(3), [.lend(3, fourth)])
        expectEqual(state.didReturn(3, isReusable: true), [.park(3)])
    }

    @Test func theConnectionThatHasBeenIdleLongestGivesUpItsPlace() {
        let state = Numbers(PoolLimits(perKey: 2, total: 2))
        for (member, key) in [a, b].enumerated() {
            let (request, _) = state.request(key)
            expectEqual(state.didMake(member), [.lend(member, request)])
        }
        for member in 0..<2 { expectEqual(state.didReturn(member, isReusable: true), [.park(member)]) }
        let (_, actions) = state.request(.name("c"))
        expectEqual(actions, [.close(0), .make(2, .name("c"))])
        let (reuse, check) = state.request(b)
        expectEqual(check, [.check(1, reuse)])
    }

    @Test func aRequestForANewTargetMayBeOneTooMany() {
        let state = Numbers(PoolLimits(perKey: 2, total: 1, waiting: 0))
        _ = state.request(a)
        let (request, actions) = state.request(b)
        expect(actions == [.reject(request, "tooManyWaiting")] && state.state.lines[b] == nil)
    }

    /// Each freed place moves its target to its next request, which may stand anywhere among the others' requests.
    @Test func twentyThousandTargetsWaitForOnePlace() {
        expectProportional(20_000) { count in
            let state = Numbers(PoolLimits(total: 1))
            let keys = (0..<count).map { PoolKey.name("\($0)") }
            var next = state.request(a).1
            for key in keys + keys.reversed() { _ = state.request(key) }
            var lent: [Int] = []
            while case .make(let member, _)? = next.last {
                if case .lend(_, let request)? = state.didMake(member).first { lent.append(request) }
                next = state.didReturn(member, isReusable: lent.count % 2 == 0)
            }
            expectEqual(lent, Array(0...2 * count))
        }
    }

    /// As above, with checks of one target that all fail.
    @Test(arguments: [false, true]) func twentyThousandRequestsReturnToTheirPlaces(backwards: Bool) {
        expectProportional(20_000) { count in
            let state = Numbers(PoolLimits(perKey: count))
            for _ in 0..<count { _ = state.request(a) }
            for member in 0..<count { _ = state.didMake(member) }
            for member in 0..<count { _ = state.didReturn(member, isReusable: true) }
            let requests = (0..<count).map { _ in state.request(a).0 }
            // The most recently used one is checked for the oldest request.
            for index in 0..<count { _ = state.didCheck(backwards ? index : count - 1 - index, isUsable: false) }
            for (index, request) in requests.enumerated() {
                let actions = state.didMake(count + index)
                if actions != [.lend(count + index, request)] { Issue.record("\(actions) instead of \(request)") }
            }
        }
    }
}
