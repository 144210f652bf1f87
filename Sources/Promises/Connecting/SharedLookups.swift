import Reactor

/// Lookups in progress, by name. Equal ones share one call of getaddrinfo(3), and so one thread, whichever threads made
/// their promises.
final class SharedLookups: Sendable {
    /// Finds the addresses of a name, with port 0.
    typealias Find = @Sendable (String) throws(NameLookupError) -> [SocketAddress]

    private let pool: ThreadPool
    private let find: Find
    private let lookups = LockedValue(Lookups())

    /// Names are in lower case.
    private struct Lookups {
        /// The promises of a name that is being looked up or waits for a thread, by order of arrival. Empty if all were
        /// cancelled.
        var promises: [String: [Int: LookupPromise]] = [:]
        var last = 0

        mutating func add(_ promise: LookupPromise, of name: String) {
            last += 1
            promise.number = last
            promises[name, default: [:]][last] = promise
        }

        mutating func take(_ name: String) -> [LookupPromise] {
            (promises.removeValue(forKey: name) ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        }
    }

    init(on pool: ThreadPool, _ find: @escaping Find) { (self.pool, self.find) = (pool, find) }

    /// Starts the lookup of `promise`, or joins the one for the same name.
    func begin(_ promise: LookupPromise) {
        // In a forked child no thread ends the lookups of the parent, and one may hold the lock.
        if pool.isForked { return promise.settle(.failure(DispatchError.poolIsForked(name: pool.name))) }
        let name = promise.name
        let isFirst = lookups.withLock { lookups in
            defer { lookups.add(promise, of: name) }
            return lookups.promises[name] == nil
        }
        guard isFirst else { return }
        do { try pool.dispatch { [self] in run(name) } } catch { settle(name, .failure(error)) }
    }

    private func run(_ name: String) {
        let isWanted = lookups.withLock { lookups in
            if lookups.promises[name]?.isEmpty == false { return true }
            lookups.promises[name] = nil
            return false
        }
        if !isWanted { return }
        do throws(NameLookupError) { settle(name, .success(try find(name))) } catch { settle(name, .failure(error)) }
    }

    // The name is forgotten first: a retry after a failure gets a new lookup.
    private func settle(_ name: String, _ result: Result<[SocketAddress], any Error>) {
        for promise in lookups.withLock({ $0.take(name) }) { promise.settle(result) }
    }

    fileprivate func forget(_ promise: LookupPromise) {
        if pool.isForked { return }
        lookups.withLock { _ = $0.promises[promise.name]?.removeValue(forKey: promise.number) }
    }
}

/// The promise of one caller of a lookup. Its loop counts it as external work.
// @unchecked: as PromiseCore. `number` is accessed under the lock of the lookups, or by the party that has claimed the
// promise.
final class LookupPromise: PromiseCore, @unchecked Sendable {
    private let host: String
    private let port: UInt16
    private let lookups: SharedLookups
    private let home = EventLoop.ofCurrentThread.loopToNotify
    /// The host in lower case, since names are case-insensitive.
    let name: String
    fileprivate(set) var number = 0

    private init(_ host: String, _ port: UInt16, by lookups: SharedLookups) {
        (self.host, self.port, self.lookups) = (host, port, lookups)
        name = String(decoding: host.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        super.init(
            state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<[SocketAddress]>.self))
    }

    static func begin(_ host: String, _ port: UInt16, by lookups: SharedLookups) -> PromiseCore {
        let promise = LookupPromise(host, port, by: lookups)
        promise.home.beginExternalWork()
        let core = promise.traced(root: "addresses", Promise<[SocketAddress]>.self, #fileID, #line)
        lookups.begin(promise)
        return core
    }

    fileprivate func settle(_ result: Result<[SocketAddress], any Error>) {
        guard claim() else { return }
        switch result {
        case .success(let addresses):
            fulfill(
                addresses.map { address in
                    var address = address
                    address.port = port
                    return address
                })
        case .failure(let error as NameLookupError):
            reject(NameLookupError(host: host, code: error.code, systemCode: error.systemCode))
        case .failure(let error): reject(error)
        }
        home.endExternalWork()
    }

    override func cancelExternally(with error: (any Error)?, in _: inout Cancellation) {
        guard claim() else { return }
        rejectCancelled(with: error, at: nil)
        lookups.forget(self)
        home.endExternalWork()
    }
}
