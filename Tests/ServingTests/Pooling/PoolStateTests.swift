import Reactor
import TestSupport
import Testing

@testable import Promises
@testable import PromisesTestSupport

/// The pool's state machine beside random events: its invariants hold after each, and no request is stranded.
@Suite struct PoolStateTests {
    @Test(arguments: 0..<40) func invariantsHoldAndEveryRequestIsAnswered(seed: Int) {
        var run = Run(UInt64(seed))
        for _ in 0..<2_000 {
            run.step()
            run.check()
        }
        run.finish()
    }

    /// A pool whose connections and requests are numbers.
    struct Run {
        var state: PoolState
        var random: SplitMix64
        let targets: [PoolTarget] = [.name("a"), .name("b"), .name("c")]
        var now = LoopInstant(nanoseconds: 0)
        var connecting: Set<Int> = []
        var checking: Set<Int> = []
        var parked: Set<Int> = []
        var leased: Set<Int> = []
        var ended: Set<Int> = []
        /// Requests without an answer, by their targets.
        var pending: [Int: PoolTarget] = [:]
        var lastLent: [PoolTarget: Int] = [:]

        init(_ seed: UInt64) {
            random = SplitMix64(seed)
            let limits = PoolState.Limits(
                connections: 1 + random.below(4), total: random.once(in: 2) ? .max : 1 + random.below(6),
                waiting: random.once(in: 2) ? .max : 3,
                waitTime: random.once(in: 3) ? nil : .seconds(5), idleTime: random.once(in: 3) ? nil : .seconds(9),
                lifetime: random.once(in: 2) ? nil : .seconds(20))
            state = PoolState(limits)
        }

        mutating func step() {
            now = now.advanced(by: .milliseconds(random.below(400)))
            switch random.below(10) {
            case 0, 1, 2:
                let target = random.pick(targets)
                let (request, actions) = state.request(target, at: now)
                pending[request] = target
                apply(actions)
            case 3: if let member = pick(connecting) { apply(state.didConnect(member, at: now)) }
            case 4:
                if let member = pick(connecting) {
                    connecting.remove(member)
                    ended.insert(member)
                    apply(state.connectDidFail(member))
                }
            case 5: if let member = pick(checking) { apply(state.didCheck(member, isUsable: !random.once(in: 3))) }
            case 6, 7:
                if let member = pick(leased) {
                    leased.remove(member)
                    parked.insert(member)
                    apply(state.didReturn(member, isReusable: !random.once(in: 4), at: now))
                }
            case 8: if let member = pick(parked) { apply(state.didLose(member)) }
            default:
                if let request = pick(Set(pending.keys)), random.once(in: 2) {
                    pending[request] = nil
                    apply(state.cancel(request))
                } else {
                    apply(state.expire(at: now))
                }
            }
        }

        mutating func pick(_ set: Set<Int>) -> Int? { set.isEmpty ? nil : random.pick(set.sorted()) }

        mutating func apply(_ actions: [PoolState.PoolAction]) {
            for action in actions {
                switch action {
                case .connect(let member, _): connecting.insert(member)
                case .cancelConnect(let member):
                    #expect(connecting.remove(member) != nil)
                    ended.insert(member)
                case .check(let member, let request):
                    #expect(parked.remove(member) != nil && pending[request] != nil)
                    checking.insert(member)
                case .lend(let member, let request):
                    connecting.remove(member)
                    checking.remove(member)
                    #expect(pending.removeValue(forKey: request) != nil, "a request is answered once")
                    #expect(leased.insert(member).inserted)
                case .park(let member):
                    connecting.remove(member)
                    parked.insert(member)
                case .close(let member), .abort(let member):
                    let wasThere = [connecting, checking, parked, leased].contains { $0.contains(member) }
                    #expect(wasThere && !ended.contains(member))
                    for set in [\Run.connecting, \.checking, \.parked, \.leased] { self[keyPath: set].remove(member) }
                    ended.insert(member)
                case .reject(let request, _):
                    #expect(pending.removeValue(forKey: request) != nil, "a request is answered once")
                }
            }
        }

        func check() {
            #expect(state.memberCount == connecting.count + checking.count + parked.count + leased.count)
            #expect(state.connectingCount == connecting.count && state.leasedCount == leased.count)
            #expect(state.idleCount == parked.count && state.waitingCount == pending.count)
            #expect(state.memberCount <= state.limits.total)
            let isFull = state.memberCount == state.limits.total && state.idleCount == 0
            var checked = 0
            for target in targets {
                let line = state.counts(of: target)
                #expect(line.members <= state.limits.connections)
                #expect(line.idle == 0 || line.waiting == 0, "a request waits while a connection is idle")
                let hasConnects = line.members == state.limits.connections || line.connecting >= line.waiting
                #expect(isFull || hasConnects, "no connection is opened for a request")
                checked += line.checked
            }
            #expect(checked == checking.count)
        }

        /// With servers that do their work every request ends, and after a drain nothing is left.
        mutating func finish() {
            if random.once(in: 2) { apply(state.drain()) }
            var rounds = 0
            while !pending.isEmpty || !leased.isEmpty || !checking.isEmpty || !connecting.isEmpty {
                rounds += 1
                guard rounds < 100_000 else {
                    Issue.record("\(pending.count) requests are stranded")
                    return
                }
                if let member = pick(connecting) { apply(state.didConnect(member, at: now)) }
                if let member = pick(checking) { apply(state.didCheck(member, isUsable: true)) }
                if let member = pick(leased) {
                    leased.remove(member)
                    parked.insert(member)
                    apply(state.didReturn(member, isReusable: true, at: now))
                }
                check()
            }
            apply(random.once(in: 2) ? state.close() : state.abort())
            #expect(state.isFinished && state.lines.isEmpty)
        }
    }

    @Test func requestsAreServedInTheirOrderEvenAfterAFailedCheck() {
        var state = PoolState(.init(connections: 2))
        let target = PoolTarget.name("a")
        let now = LoopInstant(nanoseconds: 0)
        let (first, connects) = state.request(target, at: now)
        let (second, _) = state.request(target, at: now)
        #expect(connects == [.connect(0, target)])
        #expect(state.didConnect(0, at: now) == [.lend(0, first)])
        #expect(state.didConnect(1, at: now) == [.lend(1, second)])
        let (third, _) = state.request(target, at: now)
        let (fourth, _) = state.request(target, at: now)
        let (fifth, _) = state.request(target, at: now)
        #expect(state.didReturn(0, isReusable: true, at: now) == [.check(0, third)])
        #expect(state.didReturn(1, isReusable: true, at: now) == [.check(1, fourth)])
        // Both fail, the later one first: the third request still goes before the fourth, and that before the fifth.
        #expect(state.didCheck(1, isUsable: false) == [.close(1), .connect(2, target)])
        #expect(state.didCheck(0, isUsable: false) == [.close(0), .connect(3, target)])
        #expect(state.didConnect(3, at: now) == [.lend(3, third)])
        #expect(state.didConnect(2, at: now) == [.lend(2, fourth)])
        #expect(state.didReturn(2, isReusable: false, at: now) == [.close(2), .connect(4, target)])
        #expect(state.didConnect(4, at: now) == [.lend(4, fifth)])
    }

    // MARK: The limit over all targets

    private let a = PoolTarget.name("a")
    private let b = PoolTarget.name("b")
    private let start = LoopInstant(nanoseconds: 0)

    @Test func aPlaceThatIsFreedGoesToTheOldestRequestOfAllTargets() {
        var state = PoolState(.init(connections: 2, total: 1))
        let (first, connect) = state.request(a, at: start)
        #expect(connect == [.connect(0, a)])
        let (second, _) = state.request(b, at: start)
        let (third, none) = state.request(a, at: start)
        #expect(none.isEmpty && state.didConnect(0, at: start) == [.lend(0, first)])
        #expect(state.didReturn(0, isReusable: true, at: start) == [.close(0), .connect(1, b)], "b has waited longer")
        #expect(state.didConnect(1, at: start) == [.lend(1, second)])
        let (fourth, _) = state.request(b, at: start)
        #expect(state.didReturn(1, isReusable: false, at: start) == [.close(1), .connect(2, a)])
        #expect(state.connectDidFail(2) == [.reject(third, .connectFailed(2)), .connect(3, b)])
        #expect(state.didConnect(3, at: start) == [.lend(3, fourth)])
        #expect(state.didReturn(3, isReusable: true, at: start) == [.park(3)])
    }

    @Test func theConnectionThatHasBeenIdleLongestGivesUpItsPlace() {
        var state = PoolState(.init(connections: 2, total: 2))
        for (member, target) in [a, b].enumerated() {
            let (request, _) = state.request(target, at: start)
            #expect(state.didConnect(member, at: start) == [.lend(member, request)])
        }
        for member in 0..<2 { #expect(state.didReturn(member, isReusable: true, at: start) == [.park(member)]) }
        let (_, actions) = state.request(.name("c"), at: start)
        #expect(actions == [.close(0), .connect(2, .name("c"))])
        let (reuse, check) = state.request(b, at: start)
        #expect(check == [.check(1, reuse)])
    }

    @Test func aRequestForANewTargetMayBeOneTooMany() {
        var state = PoolState(.init(connections: 2, total: 1, waiting: 0))
        _ = state.request(a, at: start)
        let (request, actions) = state.request(b, at: start)
        #expect(actions == [.reject(request, .tooManyWaiting(b))] && state.lines[b] == nil)
    }

    @Test func aConnectionThatIsTooOldIsClosedWhenItReturns() {
        var state = PoolState(.init(connections: 2, lifetime: .seconds(10)))
        let requests = (0..<2).map { _ in state.request(a, at: start).0 }
        for member in 0..<2 { #expect(state.didConnect(member, at: start) == [.lend(member, requests[member])]) }
        #expect(state.didReturn(0, isReusable: true, at: start) == [.park(0)])
        let end = start.advanced(by: .seconds(10))
        #expect(state.nextDeadline == end && state.expire(at: end) == [.close(0)])
        #expect(state.nextDeadline == .distantFuture)
        #expect(state.didReturn(1, isReusable: true, at: end) == [.close(1)])
    }

    // MARK: Many

    /// Each place that is freed moves its target to its next request, which may stand anywhere among those of the others.
    @Test func twentyThousandTargetsWaitForOnePlace() {
        var state = PoolState(.init(total: 1))
        let targets = (0..<20_000).map { PoolTarget.name("\($0)") }
        let began = ContinuousClock.now
        var next = state.request(a, at: start).1
        for target in targets + targets.reversed() { _ = state.request(target, at: start) }
        var lent: [Int] = []
        while case .connect(let member, _)? = next.last {
            if case .lend(_, let request)? = state.didConnect(member, at: start).first { lent.append(request) }
            next = state.didReturn(member, isReusable: lent.count % 2 == 0, at: start)
        }
        #expect(lent == Array(0...40_000))
        // A walk for each would take minutes.
        #expect(ContinuousClock.now - began < .seconds(20))
    }

    /// As above, with checks of one target that all fail.
    @Test(arguments: [false, true]) func twentyThousandRequestsReturnToTheirPlaces(backwards: Bool) {
        let count = 20_000
        var state = PoolState(.init(connections: count))
        for _ in 0..<count { _ = state.request(a, at: start) }
        for member in 0..<count { _ = state.didConnect(member, at: start) }
        for member in 0..<count { _ = state.didReturn(member, isReusable: true, at: start) }
        let requests = (0..<count).map { _ in state.request(a, at: start).0 }
        let began = ContinuousClock.now
        // The one that was used last is checked for the oldest request.
        for index in 0..<count { _ = state.didCheck(backwards ? index : count - 1 - index, isUsable: false) }
        for (index, request) in requests.enumerated() {
            let actions = state.didConnect(count + index, at: start)
            if actions != [.lend(count + index, request)] { Issue.record("\(actions) instead of \(request)") }
        }
        #expect(ContinuousClock.now - began < .seconds(20))
    }
}
