import Reactor

// What happens to a connection once, before its first request, and what must not stay from a request.

extension ConnectionPool {
    /// Runs `prepare` within its time limit.
    func prepared(
        _ connection: Connection, _ member: PoolState.Member, _ prepare: () throws -> Promise<Void>
    ) -> Promise<Connection> {
        guard members[member] != nil else {
            Parking.close(connection)
            return Promise(refused: PromiseError.cancelled)
        }
        // A cancellation closes the connection by its member.
        members[member]?.connection = connection
        let preparing = firstly { try prepare() }
        let limited = configuration.prepareTimeout.map { preparing.timeout($0) } ?? preparing
        return limited.map {
            Parking.resetSettings(of: connection)
            return connection
        }.tapError(policy: .allErrors) { _ in Parking.close(connection) }
    }

    /// Notes which filter and options the pool itself has given to a connection.
    func noteSettings(of member: PoolState.Member) {
        guard let connection = members[member]?.connection else { return }
        members[member]?.filter = connection.layer as? InstalledFilter
        connection.ensuredColdState.hasChangedOptions = false
    }

    /// Whether a request has left the socket options and the filter of a connection as they were.
    func hasOriginalSettings(_ member: PoolState.Member) -> Bool {
        guard let member = members[member], let cold = member.connection?.cold else { return false }
        return !cold.hasChangedOptions && cold.layer === member.filter
    }
}
