import Promises
import Reactor
import ReactorLibc

// Resources that are connections, or use one: opening, resetting after a request, and reacting to the peer.

extension Pool {
    /// Makes a pool of resources with one connection each, such as sessions. The pool connects, closes the connection
    /// with the resource, and watches it while idle.
    ///
    /// ```swift
    /// let sessions = Pool(to: "db.internal:5432") { connection, _ in Session.open(on: connection) }
    /// ```
    ///
    /// An idle resource is closed when the peer ends or resets its connection, without reading. Before a reuse, the
    /// pool checks the connection: if the peer has closed, or has sent anything since the last request, the resource is
    /// closed, and the request gets another.
    /// - Parameters:
    ///   - server: the key of requests without a key.
    ///   - limits: as in the form with `make`; `makeTimeout` includes the connect and `prepare`.
    ///   - options: the socket options of each connection.
    ///   - lookup: finds the addresses of a name.
    ///   - route: the endpoint to connect to for a key, such as a proxy, if not the key itself. Called on the pool's
    ///     thread for each new connection. If it throws, a request is rejected as after a failed connect.
    ///   - check: as in the form with `make`, after the pool's own check.
    ///   - close: ends a resource. The pool closes the connection itself.
    ///   - keepsAfter: as in the form with `make`.
    ///   - prepare: makes a resource on a new connection, with the key of the requests: it logs in, for example. If it
    ///     fails, the connection is closed, and a request is rejected as after a failed connect. Its filters and socket
    ///     options stay. `idleTimeout`, `writeTimeout`, `frameTimeouts`, `readRate`, `writeQueueLimit` and
    ///     `writeWatermarks` are reset to their defaults.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(
        to server: PoolKey = "the pool", limits: PoolLimits = PoolLimits(), options: [SocketSetting] = [],
        lookup: any NameLookup = SystemNameLookup.shared, via route: @escaping (PoolKey) throws -> PoolKey = { $0 },
        check: ((Resource) throws -> Promise<Void>)? = nil,
        close: ((Resource) -> Void)? = nil, keepsAfter: @escaping (any Error) -> Bool = { _ in false },
        prepare: @escaping (_ connection: Connection, _ server: PoolKey) throws -> Promise<Resource>
    ) {
        let make = { (member: PoolMember) in
            let key = member.line.key
            return connect(to: try route(key), options: options, lookup: lookup).then { connection in
                if !member.isMaking { throw PromiseError.cancelled }
                // From now on the connection is closed with its member.
                member.connection = connection
                return try prepare(connection, key)
            }
        }
        self.init(limits, server, make, check, close, keepsAfter)
    }
}

extension Pool where Resource == Connection {
    /// Makes a pool whose resources are connections. `prepare` installs a filter or logs in on each new one.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(
        to server: PoolKey = "the pool", limits: PoolLimits = PoolLimits(), options: [SocketSetting] = [],
        lookup: any NameLookup = SystemNameLookup.shared, via route: @escaping (PoolKey) throws -> PoolKey = { $0 },
        check: ((Connection) throws -> Promise<Void>)? = nil,
        keepsAfter: @escaping (any Error) -> Bool = { _ in false },
        prepare: ((_ connection: Connection, _ server: PoolKey) throws -> Promise<Void>)? = nil
    ) {
        self.init(
            to: server, limits: limits, options: options, lookup: lookup, via: route, check: check,
            keepsAfter: keepsAfter
        ) { connection, key in
            try prepare?(connection, key).map { connection } ?? .value(connection)
        }
    }
}

extension Pool {
    func noteSettings(of connection: Connection, _ member: PoolMember) {
        ParkedConnection.resetSettings(of: connection)
        member.filter = connection.cold?.filter
        connection.ensuredColdState.hasChangedOptions = false
    }

    func park(_ member: PoolMember) {
        guard let connection = member.connection else { return }
        let parking = member.parking ?? ParkedConnection(member, of: self)
        member.parking = parking
        parking.begin(on: connection)
    }

    func canServe(_ connection: Connection) -> Bool {
        ParkedConnection.end(on: connection)
        return ParkedConnection.isReusable(connection) && !ParkedConnection.hasUnexpectedEvent(connection)
    }

    func release(_ connection: Connection, of member: PoolMember, isKept: Bool) {
        if !isKept { connection.abort() }
        let isReusable = ParkedConnection.isReusable(connection) && member.hasOriginalSettings
        if isReusable {
            ParkedConnection.resetSettings(of: connection)
        } else {
            ParkedConnection.close(connection, linger: .seconds(5))
        }
        if isReusable || !connection.lifecycle.hasDescriptor { return didReturn(member, isReusable: isReusable) }
        // Queued bytes still have time to leave. Until then the connection counts, and a drain waits for it.
        connection.closed.done { [self] _ in didReturn(member, isReusable: false) }
    }
}

extension PoolMember {
    fileprivate var hasOriginalSettings: Bool {
        guard let cold = connection?.cold else { return false }
        return !cold.hasChangedOptions && cold.filter === filter
    }

    /// The number of bytes that the connection has delivered, after its filter, which a closed connection no longer
    /// has.
    var deliveredBytes: Int { filter?.deliveredCount ?? connection?.bytesReceived ?? 0 }
}

extension PoolRequest {
    /// Returns true when the peer had abandoned the connection: another request had used it before, the peer has ended
    /// or reset it, and no byte of an answer has arrived.
    func isStale(after error: (any Error)?) -> Bool {
        guard let member, let connection = member.connection, error?.isCancelled != true else { return false }
        // Complete records, such as an end record, need not belong to an answer. An incomplete one may.
        let isInsideAnswer = member.filter.map { $0.isBusy || $0.isRemoved } ?? false
        guard isReused, member.deliveredBytes == bytesBefore, !isInsideAnswer else { return false }
        return switch connection.failure?.code {
        case ECONNRESET, EPIPE: true
        // The body may have aborted the connection after the end.
        case nil, ECANCELED: connection.reader.hasEnded
        // Not a time-out of the connection: a slow server would be asked again and again.
        default: connection.reportedFailure as? ConnectionFilterError == .truncated
        }
    }
}
