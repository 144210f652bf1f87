import Promises
import Reactor
import ReactorLibc

// Resources that are or use connections: opening them, resetting them after a request, and reacting to the peer.

extension Pool {
    /// Makes a pool whose resources have one connection each, such as sessions. The pool connects, closes the
    /// connection with its resource, and watches it while the resource is idle.
    ///
    /// ```swift
    /// let sessions = Pool(to: "db.internal:5432") { connection, _ in Session.open(on: connection) }
    /// ```
    ///
    /// An idle resource is closed, without reading, when the peer ends or resets its connection. Before each reuse the
    /// pool checks the connection. If the peer has ended it, or has sent anything since the last request, the resource
    /// is closed, and the request gets another.
    /// - Parameters:
    ///   - server: the key for requests that name none.
    ///   - limits: the same as for the initializer with `make`; `makeTimeout` includes the connect and `prepare`.
    ///   - options: each connection's socket options.
    ///   - lookup: finds a name's addresses.
    ///   - route: returns the endpoint to connect to for a key, if not the key itself, such as a proxy. Called on the
    ///     pool's thread for each new connection. If it throws, a request is rejected as after a failed connect.
    ///   - check: the same as for the initializer with `make`; called after the pool's own check.
    ///   - close: ends a resource. The pool closes the connection.
    ///   - keepsAfter: the same as for the initializer with `make`.
    ///   - prepare: makes a resource for the key on a new connection, for instance by logging in. If it fails, the
    ///     connection is closed, and a request is rejected as after a failed connect. Its filters and socket options
    ///     stay. `idleTimeout`, `writeTimeout`, `frameTimeouts`, `readRate`, `writeQueueLimit` and `writeWatermarks`
    ///     are reset to their defaults.
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
                // From now on, closing the member closes the connection.
                member.connection = connection
                return try prepare(connection, key)
            }
        }
        self.init(limits, server, make, check, close, keepsAfter)
    }
}

extension Pool where Resource == Connection {
    /// Makes a pool whose resources are connections. `prepare` sets up each new one: it installs a filter or logs in.
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
        // Queued bytes still have time to be sent. Until then the connection counts, and a drain waits for it.
        connection.closed.done { [self] _ in didReturn(member, isReusable: false) }
    }
}

extension PoolMember {
    fileprivate var hasOriginalSettings: Bool {
        guard let cold = connection?.cold else { return false }
        return !cold.hasChangedOptions && cold.filter === filter
    }

    /// The number of bytes delivered by the connection after its filter. Uses the member's `filter`, because a closed
    /// connection has none.
    var deliveredBytes: Int { filter?.deliveredCount ?? connection?.bytesReceived ?? 0 }
}

extension PoolRequest {
    /// Returns true if the peer had abandoned the connection: another request had used it before, the peer has ended or
    /// reset it, and no byte of an answer has arrived.
    func isStale(after error: (any Error)?) -> Bool {
        guard let member, let connection = member.connection, error?.isCancelled != true else { return false }
        // A complete record, such as an end record, need not belong to an answer. An incomplete one may.
        let isInsideAnswer = member.filter.map { $0.isBusy || $0.isRemoved } ?? false
        guard isReused, member.deliveredBytes == bytesBefore, !isInsideAnswer else { return false }
        return switch connection.failure?.code {
        case ECONNRESET, EPIPE: true
        // The closure may have aborted the connection after the peer ended it.
        case nil, ECANCELED: connection.reader.hasEnded
        // Time-outs do not count, because a slow server would get the request again and again.
        default: connection.reportedFailure as? ConnectionFilterError == .truncated
        }
    }
}
