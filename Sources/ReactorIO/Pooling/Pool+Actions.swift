import Promises
import Reactor
import ReactorLibc

// The pool's side effects. `PoolState` decides, and only this file changes resources, promises and timers.

extension Pool {
    /// Executes the state's actions. User code, in the check or an inline handler, may call the pool or turn the loop.
    /// So each action is removed before it is executed, and a nested call executes the others first.
    func perform() {
        while let action = state.actions.popFirst() { execute(action) }
        updateTimer()
        if state.isFinished { draining?.finish() }
    }

    private func execute(_ action: PoolAction) {
        switch action {
        case .make(let member): make(member)
        case .lend(let member, let request): lend(member, request)
        case .check(let member): check(member)
        case .park(let member): park(member)
        case .close(let member): member.close(closeResource)
        case .abort(let member), .cancelMake(let member):
            if case .abort = action { member.connection?.abort() }
            member.work.take()?.cancel()
            member.close(closeResource)
        case .reject(let request, var error):
            if loop.hasEnded, case PoolError.closed = error {
                error = SystemError(.connect, ECANCELED, detail: "the loop has ended")
            }
            if let resolver = request.resolver.take() { resolver.reject(error) } else { request.refusal = error }
        }
    }

    // MARK: Making

    private func make(_ member: PoolMember) {
        var timer: EventLoop.Timer?
        var isLate = false
        member.budget = budget
        // Even if its promise was cancelled, a resource made in time reaches this `tap`. Nothing else would close it.
        let making = firstly { try makeResource(member) }.tap { [self] outcome in
            timer?.cancel()
            member.work = nil
            switch outcome {
            case .success(let resource):
                member.resource = PoolBox(resource)
                // The request was cancelled before the resource arrived.
                guard member.isMaking else { return member.close(closeResource) }
                if let connection = member.connection { noteSettings(of: connection, member) }
                state.didMake(member, at: loop.now)
            case .failure(let error):
                member.close(closeResource)
                state.makeDidFail(member, isLate ? PromiseError.timedOut : error)
            }
            perform()
        }
        member.begin(making.core)
        if let limit = state.limits.makeTimeout {
            timer = loop.schedule(after: limit) {
                isLate = true
                making.core.cancelNow(with: PromiseError.timedOut)
            }
        }
        making.catch(policy: .allErrors) { _ in }
    }

    // MARK: Leases

    private func lend(_ member: PoolMember, _ request: PoolRequest) {
        if let connection = member.connection { ParkedConnection.end(on: connection) }
        request.begin(with: member, of: self)
        // If the request was cancelled, releasing the lease returns the resource unused.
        request.resolver.take()?.fulfill(request)
    }

    private func check(_ member: PoolMember) {
        if let connection = member.connection, !canServe(connection) {
            return state.didCheck(member, isUsable: false)
        }
        guard let checkResource else { return state.didCheck(member, isUsable: true) }
        let answer = firstly { try checkResource(member.box(of: Resource.self).resource) }
        let limited = state.limits.checkTimeout.map { answer.timeout($0) } ?? answer
        let checking = limited.tap { [self] outcome in
            member.work = nil
            var isUsable = member.connection.map(ParkedConnection.isReusable) ?? true
            if case .failure = outcome { isUsable = false }
            if isUsable, let connection = member.connection { ParkedConnection.resetSettings(of: connection) }
            state.didCheck(member, isUsable: isUsable)
            perform()
        }
        member.begin(checking.core)
        checking.catch(policy: .allErrors) { _ in }
    }

    func didLose(_ member: PoolMember) {
        state.didLose(member)
        perform()
    }

    // MARK: Time

    /// Sets the timer, which may fire early, because reusing a resource does not move it. While waiting requests have a
    /// deadline, it keeps the loop alive.
    private func updateTimer() {
        if loop.hasEnded { return }
        defer { updateBackgroundSources() }
        if state.members.isEmpty && state.waiting.isEmpty { return timer.cancel() }
        // Weak, because idle resources must not retain the pool. Waiting requests do so anyway.
        timer.set(
            to: state.nextDeadline, keepsAlive: state.hasWaitDeadline, on: loop,
            InternalJob({ [weak self] in self?.timerFired() }, ifLoopEnds: { [weak self] in self?.loopWillEnd() }))
    }

    /// Idle resources and this timer settle no promise, so a `hang` that waits only for them is reported as stalled.
    private func updateBackgroundSources() {
        let sources = state.idle.count + (timer.isUnreferenced ? 1 : 0)
        if sources == backgroundSources { return }
        loop.changeBackgroundSources(by: sources - backgroundSources)
        backgroundSources = sources
    }

    private func timerFired() {
        timer.didFire()
        state.expire(at: loop.now)
        perform()
    }

    private func loopWillEnd() {
        draining?.noteRest(of: state)
        for member in state.members.all {
            member.connection?.loopWillEnd()
            // Handlers of a cancellation would not run any more, and the connections end with their loop.
            (member.connection, member.work) = (nil, nil)
        }
        state.abort()
        perform()
    }
}
