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
        /// Whether the thread that had taken the step before could take this one too.
        var couldContinue = false
        var preemptions = 0
        var isShared = false
        var toTry: UInt8
        var tried: UInt8 = 0
        var isOpen = false
    }

    private let bound: Bound
    private let body: () -> Void
    private var states: [State] = []
    private var differences = 0
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
        repeat {
            run(choices, asleep)
            if note(choices.count) {
                if bound == .none { addRaces(from: max(choices.count - 1, 0)) } else { noteShared() }
                guard let next = next() else { return true }
                (choices, asleep) = next
            } else {
                // Anew, since something was made that is made once in a process.
                differences += 1
                if differences > 20 { model_fail("the scenario is not deterministic") }
                (states, choices) = ([], [])
            }
        } while runs < limit && !isOver()
        return false
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
                if known.thread != step.thread || known.at != step.at || known.from != step.from { return false }
                continue
            }
            if index >= states.count { states.append(State(step: step, toTry: 1 << step.thread)) }
            states[index].step = step
            guard index > 0 else { continue }
            let before = states[index - 1]
            states[index].couldContinue = step.enabled >> before.step.thread & 1 == 1
            let isPreemption = states[index].couldContinue && step.thread != before.step.thread
            states[index].preemptions = before.preemptions + (isPreemption ? 1 : 0)
        }
        return steps.count >= chosen
    }

    /// Goes back to the last state where something is left to try.
    private mutating func next() -> (choices: [UInt8], asleep: UInt8)? {
        while let index = states.indices.last {
            if case .preemptions(let most) = bound, !states[index].isOpen {
                states[index].isOpen = true
                let isFree = !states[index].couldContinue
                if isFree || (states[index].isShared && states[index - 1].preemptions < most) {
                    states[index].toTry = states[index].step.enabled
                }
            }
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

    /// With a bound: notes the steps at locations that several threads use in this run and one changes. (Where that is so only if
    /// the thread is interrupted here, it is so too if it is interrupted later.)
    private mutating func noteShared() {
        var users: [UInt32: UInt8] = [:]
        var changed = Set<UInt32>()
        for step in steps {
            for location in [step.at, step.also] where location != 0 {
                users[location, default: 0] |= 1 << step.thread
                if model_changes(step.kind) { changed.insert(location) }
            }
        }
        changed = changed.filter { users[$0]!.nonzeroBitCount > 1 }
        for (index, step) in steps.enumerated() where changed.contains(step.at) || changed.contains(step.also) {
            states[index].isShared = true
        }
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
            // It could not come before an unlock, but before the lock that this one ends.
            var unlocked = clock
            let isLock = step.kind == model_lock.rawValue || step.kind == model_woken.rawValue
            var candidates = uses[step.at] ?? []
            if step.also != 0 { candidates = (candidates + (uses[step.also] ?? [])).sorted() }
            for other in candidates.reversed() where steps[other].thread != step.thread && depend(other, index) {
                let one = steps[other]
                unlocked = pointwiseMax(unlocked, clocks[other])
                if isLock && (one.kind == model_unlock.rawValue || one.kind == model_wait.rawValue) { continue }
                let hasWaited = one.enabled >> step.thread & 1 == 0 && lastOfThread[thread] < other
                if clock[Int(one.thread)] <= other && index >= first && !hasWaited {
                    tryOther(before: other, for: index, clocks)
                }
                clock = pointwiseMax(clock, clocks[other])
            }
            clock = unlocked
            clock[thread] = Int32(index + 1)
            if step.kind == model_start.rawValue {
                started += 1
                ofThread[started] = clock
            }
            ofThread[thread] = clock
            lastOfThread[thread] = index
            clocks.append(clock)
            for location in [step.at, step.also] where location != 0 { uses[location, default: []].append(index) }
        }
    }

    private func depend(_ one: Int, _ other: Int) -> Bool {
        let steps = model_steps()!
        return model_depend(steps + one, steps + other)
    }

    /// Before the step `earlier`, one of the threads is tried that lead to `later` without it.
    private mutating func tryOther(before earlier: Int, for later: Int, _ clocks: [Clock]) {
        let by = Int(steps[earlier].thread)
        // The steps in between that do not follow from the earlier one, and the later one.
        let way = ((earlier + 1)..<later).filter { clocks[$0][by] <= earlier } + [later]
        var initials: UInt8 = 0
        var seen: UInt8 = 0
        for (place, index) in way.enumerated() where seen >> steps[index].thread & 1 == 0 {
            seen |= 1 << steps[index].thread
            let follows = way[..<place].contains {
                index == later ? depend($0, later) : clocks[index][Int(steps[$0].thread)] > $0
            }
            if !follows { initials |= 1 << steps[index].thread }
        }
        let enabled = steps[earlier].enabled
        initials &= enabled
        if initials == 0 { initials = enabled }
        if states[earlier].toTry & initials != 0 { return }
        let preferred = UInt8(1) << steps[later].thread
        states[earlier].toTry |= initials & preferred != 0 ? preferred : initials & (~initials + 1)
    }
}
