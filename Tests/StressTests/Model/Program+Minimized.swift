extension Program {
    /// The smallest program that still fails, found by leaving out steps one by one.
    func minimized(whileItFails fails: (Program) -> Bool) -> Program {
        var smallest = self
        var mayShrink = true
        while mayShrink {
            mayShrink = false
            // After each success, continue at the same place: everything before it has been tried.
            var index = 0
            while true {
                let candidates = smallest.steps.smallerByOne
                guard index < candidates.count else { break }
                let candidate = Program(steps: candidates[index])
                if fails(candidate) {
                    smallest = candidate
                    mayShrink = true
                } else {
                    index += 1
                }
            }
        }
        return smallest
    }
}

extension [Step] {
    /// Every list with one step less, or with one slightly simpler handler.
    fileprivate var smallerByOne: [[Step]] {
        var result: [[Step]] = []
        for index in indices {
            var shorter = self
            shorter.remove(at: index)
            result.append(shorter)
            for simpler in self[index].simplerByOne {
                var changed = self
                changed[index] = simpler
                result.append(changed)
            }
        }
        return result
    }
}

extension Step {
    fileprivate var simplerByOne: [Step] {
        switch action {
        case .attach(let op, let source, let handler):
            handler.simplerByOne.map { Step(name: name, action: .attach(op, to: source, $0)) }
        case .onCancel(let key, let handler):
            handler.simplerByOne.map { Step(name: name, action: .onCancel(key, $0)) }
        default: []
        }
    }
}

extension Handler {
    fileprivate var simplerByOne: [Handler] {
        var result = steps.smallerByOne.map { Handler(steps: $0, reply: reply, captures: captures) }
        if captures { result.append(Handler(steps: steps, reply: reply)) }
        if case .value = reply { return result }
        result.append(Handler(steps: steps, reply: .value(0)))
        return result
    }
}
