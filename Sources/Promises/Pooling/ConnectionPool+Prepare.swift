import Reactor

// What happens to a connection once, before its first request, and what must not stay from a request.

extension ConnectionPool {
    /// Runs `prepare` within its time limit.
    func prepared(
        _ connection: Connection, _ member: PoolState.Member, _ prepare: () throws -> Promise<Void>
    ) -> Promise<Connection> {
        guard members[member] != nil else {
            connection.closeForPool()
            return Promise(refused: PromiseError.cancelled)
        }
        // A cancellation closes the connection by its member.
        members[member]?.connection = connection
        let preparing = firstly { try prepare() }
        let limited = configuration.prepareTimeout.map { preparing.timeout($0) } ?? preparing
        return limited.map {
            connection.resetSettings()
            return connection
        }.tapError(policy: .allErrors) { _ in connection.closeForPool() }
    }

    /// Notes which filter and options the pool itself has given to a connection.
    func noteSettings(of member: PoolState.Member) {
        guard let connection = members[member]?.connection else { return }
        members[member]?.filter = connection.cold?.filter
        connection.ensuredColdState.hasChangedOptions = false
    }

    /// Whether a request has left the socket options and the filter of a connection as they were.
    func hasOriginalSettings(_ member: PoolState.Member) -> Bool {
        guard let member = members[member], let cold = member.connection?.cold else { return false }
        return !cold.hasChangedOptions && cold.filter === member.filter
    }
}
