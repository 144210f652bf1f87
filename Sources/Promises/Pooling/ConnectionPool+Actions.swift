import Glibc
import Reactor

// What the pool does. `PoolState` decides; the connections, promises and timers are changed here only.

extension ConnectionPool {
    /// Executes `following` after the actions that are still to be executed.
    ///
    /// A closure of the user's may be called in between, the health check or an inline handler of a connection, and may
    /// call the pool or turn the loop. So each action is taken out of the queue before it is executed, and an inner
    /// call executes the rest of the queue first.
    func perform(_ following: [PoolState.PoolAction]) {
        for action in following { actions.append(action) }
        while !actions.isEmpty { execute(actions.removeFirst()) }
        updateTimer()
        if state.isFinished { draining?.finish() }
    }

    /// Executes these after the present action.
    private func enqueue(_ following: [PoolState.PoolAction]) {
        for action in following { actions.append(action) }
    }

    private func execute(_ action: PoolState.PoolAction) {
        switch action {
        case .connect(let member, let target): startConnect(member, target)
        case .cancelConnect(let member):
            let removed = members.removeValue(forKey: member)
            removed?.connection.map { Parking.close($0) }
            removed?.work.core?.cancel()
        case .lend(let member, let request): lend(member, request)
        case .check(let member, _): check(member)
        case .park(let member):
            if let connection = members[member]?.connection { Parking(member, of: self).begin(on: connection) }
        case .close(let member): members.removeValue(forKey: member)?.connection.map { Parking.close($0) }
        case .abort(let member):
            let removed = members.removeValue(forKey: member)
            removed?.connection?.abort()
            removed?.work.core?.cancel()
        case .reject(let request, let rejection): reject(request, rejection)
        }
    }

    // MARK: Connects

    private func startConnect(_ member: PoolState.Member, _ target: PoolTarget) {
        let timeout = configuration.connectTimeout
        let connecting =
            switch target {
            case .address(let address): connect(to: address, timeout: timeout, options: configuration.options)
            case .addresses(let addresses): connect(to: addresses, timeout: timeout, options: configuration.options)
            case .name(let name):
                connect(to: name, timeout: timeout, options: configuration.options, lookup: configuration.lookup)
            }
        let opening = configuration.prepare.map { prepare in
            connecting.then { [self] connection in
                prepared(connection, member) { try prepare(connection, target.description) }
            }
        }
        let ready = opening ?? connecting
        members[member] = PoolMember(connection: nil, work: WeakCore(ready.core))
        ready.done { [self] connection in didConnect(member, connection) }
            .catch(policy: .allErrors) { [self] error in
                connectErrors[member] = error
                members[member] = nil
                perform(state.connectDidFail(member))
                connectErrors[member] = nil
            }
    }

    private func didConnect(_ member: PoolState.Member, _ connection: Connection) {
        // Cancelled when the connection was on its way here.
        guard members[member] != nil else { return Parking.close(connection) }
        members[member]?.connection = connection
        noteSettings(of: member)
        perform(state.didConnect(member, at: loop.now))
    }

    // MARK: Leases

    private func lend(_ member: PoolState.Member, _ request: PoolState.Request) {
        guard let connection = members[member]?.connection else { return }
        Parking.end(on: connection)
        let lease = ConnectionLease(connection, member, of: self, isReused: members[member]?.isFresh == false)
        members[member]?.isFresh = false
        // If the request has been cancelled meanwhile, the lease is released here.
        resolvers.removeValue(forKey: request)?.fulfill(lease)
    }

    private func check(_ member: PoolState.Member) {
        guard let connection = members[member]?.connection else { return }
        Parking.end(on: connection)
        if !Parking.isReusable(connection) || Parking.hasUnexpectedEvent(connection) {
            return enqueue(state.didCheck(member, isUsable: false))
        }
        guard let healthCheck = configuration.healthCheck else {
            return enqueue(state.didCheck(member, isUsable: true))
        }
        let answer = firstly { try healthCheck(connection) }
        let limited = configuration.healthCheckTimeout.map { answer.timeout($0) } ?? answer
        let checking = limited.tap { [self] outcome in
            members[member]?.work = WeakCore(nil)
            var isUsable = Parking.isReusable(connection)
            if case .failure = outcome { isUsable = false }
            if isUsable { Parking.resetSettings(of: connection) }
            perform(state.didCheck(member, isUsable: isUsable))
        }
        members[member]?.work = WeakCore(checking.core)
        checking.catch(policy: .allErrors) { _ in }
    }

    private func reject(_ request: PoolState.Request, _ rejection: PoolState.Rejection) {
        guard let resolver = resolvers.removeValue(forKey: request) else { return }
        switch rejection {
        case .timedOut(let target, let waited):
            let limit = min(configuration.limits.connections, configuration.limits.total)
            resolver.reject(PoolError.timedOut(address: target.description, limit: limit, waited: waited))
        case .tooManyWaiting(let target):
            let limit = configuration.limits.waiting
            resolver.reject(PoolError.tooManyWaiting(address: target.description, limit: limit))
        case .closed(let target):
            resolver.reject(loop.hasEnded ? endOfLoop : PoolError.closed(address: target.description))
        case .connectFailed(let member): resolver.reject(connectErrors[member] ?? endOfLoop)
        }
    }

    private var endOfLoop: SystemError { SystemError(.connect, ECANCELED, detail: "the loop has ended") }

    func didLose(_ member: PoolState.Member) { perform(state.didLose(member)) }

    // MARK: Time

    /// Sets the pool's one timer. It fires for the earliest deadline, or earlier, since it is not moved when a
    /// connection is used again; it keeps the loop alive while requests wait that it will reject.
    private func updateTimer() {
        if loop.hasEnded { return }
        defer { updateBackgroundSources() }
        if members.isEmpty && resolvers.isEmpty { return timer.cancel() }
        timer.set(
            to: state.nextDeadline, keepsAlive: state.hasWaitDeadline, on: loop, PoolTimerJob(self))
    }

    /// A `hang` that only an idle connection or this timer could end is reported as stalled: neither settles anything.
    private func updateBackgroundSources() {
        let sources = state.idleCount + (timer.isUnreferenced ? 1 : 0)
        loop.changeBackgroundSources(by: sources - backgroundSources)
        backgroundSources = sources
    }

    func timerFired() { perform(state.expire(at: loop.now)) }

    /// The loop ends: no handler of this pool will run any more.
    func loopWillEnd() {
        if let draining {
            draining.result.rejected = state.waitingCount
            draining.result.aborted = state.leasedCount
        }
        // Before the actions: no handler of a cancellation would run, and the connections end with their loop.
        let rest = members
        members = [:]
        perform(state.abort())
        for member in rest.values { member.connection?.loopWillEnd() }
    }
}
