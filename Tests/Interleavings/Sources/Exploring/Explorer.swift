import ModelRuns
import ModelThreads

/// The search for all interleavings of a scenario: it runs the scenario again and again, each time with other choices of the
/// thread that takes the next step.
package struct Explorer {
    package enum Bound: Equatable {
        /// Each order of steps that depend on one another once: dynamic partial-order reduction with source sets and sleep sets.
        case none
        /// All runs that interrupt a thread which could continue at most so often. A thread is interrupted only before steps at
        /// locations that several threads use and at least one changes.
        case preemptions(Int)
    }

    /// A state on the way of the last run, and what is tried there.
    private struct State {
        var step: model_step
        /// The thread that had taken the step before, if it could take this one too.
        var interrupted: UInt8?
        var preemptions = 0
        var toTry: UInt8
        var tried: UInt8 = 0
        var isOpen = false
    }

    private let bound: Bound
    private let body: () -> Void
    private var states: [State] = []
    /// For searches with a bound: the locations that several threads have used.
    private var shared = Set<UInt32>()
    private var differences = 0
    private var difference = ""
    package private(set) var runs = 0
    /// Those that were no repetition of what other runs had shown.
    package private(set) var newRuns = 0
    package private(set) var longest = 0

    package init(_ bound: Bound, _ body: @escaping () -> Void) {
        self.bound = bound
        self.body = body
    }

    /// - Returns: whether every interleaving within the bound has been run.
    package mutating func explore(atMost limit: Int, until isOver: () -> Bool = { false }) -> Bool {
        var choices: [UInt8] = []
        var asleep: UInt8 = 0
        while true {
            run(choices, asleep)
            let isNew = bound != .none && noteShared()
            if isNew || !note(choices.count) {
                // Anew: with more locations to interrupt at, or since something was made that is made once in a process.
                if !isNew { differences += 1 }
                if differences > 20 { model_fail("the scenario is not deterministic: \(difference)") }
                states = []
                choices = []
            } else {
                if bound == .none { addRaces(from: max(choices.count - 1, 0)) }
                guard let next = next() else { return true }
                (choices, asleep) = next
            }
            if runs >= limit || isOver() { return false }
        }
    }

    /// Runs the scenario once, with the choices of a run that has failed.
    package static func replay(_ choices: [UInt8], _ body: @escaping () -> Void) {
        var explorer = Explorer(.none, body)
        explorer.run(choices, 0)
    }

    private mutating func run(_ choices: [UInt8], _ asleep: UInt8) {
        var body = body
        withUnsafeMutablePointer(to: &body) {
            model_run({ $0!.assumingMemoryBound(to: (() -> Void).self).pointee() }, $0, choices, choices.count, asleep)
        }
        callEndings()
        runs += 1
        if model_new_count() == model_count() { newRuns += 1 }
        longest = max(longest, model_count())
    }

    // What follows a state in which all threads sleep is known from other runs.
    private var steps: UnsafeBufferPointer<model_step> {
        UnsafeBufferPointer(start: model_steps(), count: model_new_count())
    }

    /// Notes the states of the run, which had that many choices.
    /// - Returns: false if it differs from the run before where the choices are the same.
    private mutating func note(_ chosen: Int) -> Bool {
        for (index, step) in steps.enumerated() {
            if index < chosen - 1 {
                let known = states[index].step
                // (A release may be the last one in one run and not in another.)
                if known.thread != step.thread || known.at != step.at || known.name != step.name {
                    difference =
                        "step \(index), \(known.name.map { String(cString: $0) } ?? "") @\(known.at) of thread \(known.thread + 1) before, \(step.name.map { String(cString: $0) } ?? "") @\(step.at) of thread \(step.thread + 1) now"
                    return false
                }
                continue
            }
            if index >= states.count { states.append(State(step: step, toTry: 1 << step.thread)) }
            states[index].step = step
            guard index > 0 else { continue }
            let before = states[index - 1]
            let last = before.step.thread
            states[index].interrupted = step.enabled >> last & 1 == 1 ? last : nil
            let isPreemption = states[index].interrupted.map { $0 != step.thread } ?? false
            states[index].preemptions = before.preemptions + (isPreemption ? 1 : 0)
        }
        return steps.count >= chosen
    }

    /// Goes back to the last state where something is left to try.
    private mutating func next() -> (choices: [UInt8], asleep: UInt8)? {
        while let index = states.indices.last {
            if case .preemptions(let most) = bound, !states[index].isOpen { open(index, most) }
            let state = states[index]
            let tried = state.tried | 1 << state.step.thread
            let asleep = bound == .none ? state.step.asleep | tried : 0
            let left = state.toTry & ~(tried | asleep)
            if left != 0 {
                states[index].tried = tried
                states[index].step.thread = UInt8(left.trailingZeroBitCount)
                return (states.map(\.step.thread), asleep)
            }
            states.removeLast()
        }
        return nil
    }

    // MARK: With a bound

    private mutating func open(_ index: Int, _ most: Int) {
        states[index].isOpen = true
        let state = states[index]
        if state.interrupted != nil {
            let before = states[index - 1].preemptions
            guard before < most && (isShared(state.step.at) || isShared(state.step.also)) else { return }
        }
        states[index].toTry = state.step.enabled
    }

    // The numbers of locations differ between runs, since each run counts them anew. So a location is known by the thread that
    // was the first to use it, and by how many that thread had used first before.
    private var names: [UInt32: UInt32] = [:]

    private func isShared(_ location: UInt32) -> Bool { location != 0 && shared.contains(names[location]!) }

    /// - Returns: whether a location has become known to be shared.
    private mutating func noteShared() -> Bool {
        names = [:]
        var counts = [UInt32](repeating: 0, count: Int(model_threads))
        var users: [UInt32: UInt8] = [:]
        var changed = Set<UInt32>()
        let looks = [model_load, model_yield, model_sleep, model_poll].map { UInt8($0.rawValue) }
        for step in steps {
            for location in [step.at, step.also] where location != 0 {
                if users[location] == nil {
                    names[location] = UInt32(step.thread) << 20 | counts[Int(step.thread)]
                    counts[Int(step.thread)] += 1
                }
                users[location, default: 0] |= 1 << step.thread
                if !looks.contains(step.kind) { changed.insert(location) }
            }
        }
        let before = shared.count
        for (location, threads) in users where threads & (threads - 1) != 0 && changed.contains(location) {
            shared.insert(names[location]!)
        }
        return shared.count > before
    }

    // MARK: Without a bound

    private typealias Clock = SIMD8<Int32>

    /// Looks for steps that depend on an earlier one of another thread, and that could have been taken before it: the state before
    /// that one tries another thread.
    private mutating func addRaces(from first: Int) {
        let steps = steps
        var clocks: [Clock] = []
        clocks.reserveCapacity(steps.count)
        var ofThread = [Clock](repeating: .init(repeating: 0), count: Int(model_threads))
        var lastOfThread = [Int](repeating: -1, count: Int(model_threads))
        var uses: [UInt32: [Int]] = [:]
        var started = 0
        for (index, step) in steps.enumerated() {
            let thread = Int(step.thread)
            var clock = ofThread[thread]
            if step.kind == model_join.rawValue { clock = pointwiseMax(clock, ofThread[Int(step.other)]) }
            var candidates = step.at == 0 ? [] : uses[step.at] ?? []
            if step.also != 0 { candidates = (candidates + (uses[step.also] ?? [])).sorted() }
            for other in candidates.reversed() where steps[other].thread != step.thread {
                var (one, two) = (steps[other], step)
                guard model_depend(&one, &two) else { continue }
                let by = Int(one.thread)
                if clock[by] <= other && index >= first {
                    var raced: Int? = other
                    if isLock(step) && isUnlock(one) {
                        // It could not have come before. But it could have before the lock that this unlock ends.
                        raced = lock(endedBy: other)
                    } else if one.enabled >> step.thread & 1 == 0 && lastOfThread[thread] < other {
                        raced = nil
                    }
                    if let raced, clock[by] <= raced { tryOther(before: raced, for: index, clocks) }
                }
                clock = pointwiseMax(clock, clocks[other])
            }
            clock[thread] = Int32(index + 1)
            if step.kind == model_start.rawValue {
                started += 1
                ofThread[started] = clock
            }
            ofThread[thread] = clock
            lastOfThread[thread] = index
            clocks.append(clock)
            if step.at != 0 { uses[step.at, default: []].append(index) }
            if step.also != 0 { uses[step.also, default: []].append(index) }
        }
    }

    private func isLock(_ step: model_step) -> Bool {
        step.kind == model_lock.rawValue || step.kind == model_woken.rawValue
    }
    private func isUnlock(_ step: model_step) -> Bool {
        step.kind == model_unlock.rawValue || step.kind == model_wait.rawValue
    }

    private func lock(endedBy index: Int) -> Int? {
        let steps = steps
        let mutex = steps[index].kind == model_wait.rawValue ? steps[index].also : steps[index].at
        return (0..<index).last {
            let step = steps[$0]
            return step.thread == steps[index].thread
                && (step.kind == model_lock.rawValue && step.at == mutex
                    || step.kind == model_woken.rawValue && step.also == mutex)
        }
    }

    /// Before the step `earlier`, one of the threads is tried that lead to `later` without it.
    private mutating func tryOther(before earlier: Int, for later: Int, _ clocks: [Clock]) {
        let steps = steps
        let by = Int(steps[earlier].thread)
        // The steps in between that do not follow from the earlier one, and the later one.
        let way = ((earlier + 1)..<later).filter { clocks[$0][by] <= earlier } + [later]
        var initials: UInt8 = 0
        var seen: UInt8 = 0
        for (place, index) in way.enumerated() {
            let thread = steps[index].thread
            if seen >> thread & 1 == 1 { continue }
            seen |= 1 << thread
            let follows = way[..<place].contains { before in
                if index != later { return clocks[index][Int(steps[before].thread)] > before }
                var (one, two) = (steps[before], steps[later])
                return model_depend(&one, &two)
            }
            if !follows { initials |= 1 << thread }
        }
        let enabled = steps[earlier].enabled
        initials &= enabled
        if initials == 0 { initials = enabled }
        if states[earlier].toTry & initials != 0 { return }
        let preferred = UInt8(1) << steps[later].thread
        states[earlier].toTry |= initials & preferred != 0 ? preferred : initials & (~initials + 1)
    }
}
