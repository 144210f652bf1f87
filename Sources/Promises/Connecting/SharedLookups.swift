import Reactor

/// Lookups in progress, by name. Equal ones share one call of getaddrinfo(3), and so one thread, whichever threads began
/// them.
final class SharedLookups: Sendable {
    /// Finds the addresses of a name, with port 0.
    typealias Find = @Sendable (String) throws(NameLookupError) -> [SocketAddress]

    private let pool: ThreadPool
    private let find: Find
    private let lookups = LockedValue(Lookups())

    /// Names are in lower case.
    private struct Lookups {
        /// The callers for a name that is being looked up or waits for a thread, by order of arrival. Empty if all
        /// were cancelled.
        var callers: [String: [Int: LookupCaller]] = [:]
        var last = 0

        mutating func add(_ caller: LookupCaller, of name: String) -> (number: Int, isFirst: Bool) {
            last += 1
            let isFirst = callers[name] == nil
            callers[name, default: [:]][last] = caller
            return (last, isFirst)
        }

        mutating func take(_ name: String) -> [LookupCaller] {
            (callers.removeValue(forKey: name) ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        }
    }

    init(on pool: ThreadPool, _ find: @escaping Find) { (self.pool, self.find) = (pool, find) }

    /// Starts a lookup, or joins the one for the same name.
    func begin(_ host: String, _ port: UInt16) -> PromiseCore {
        let caller = LookupCaller(host: host, port: port)
        caller.home.beginExternalWork()
        let core = caller.core.traced(root: "addresses", Promise<[SocketAddress]>.self, #fileID, #line)
        // In a forked child no thread ends the lookups of the parent, and one may hold the lock.
        if pool.isForked {
            caller.settle(.failure(DispatchError.poolIsForked(name: pool.name)))
            return core
        }
        // Names are case-insensitive.
        let name = String(decoding: host.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        let (number, isFirst) = lookups.withLock { $0.add(caller, of: name) }
        let home = caller.home
        caller.core.onCancel = { [self] core, error in
            core.rejectCancelled(with: error, at: nil)
            if !pool.isForked { lookups.withLock { _ = $0.callers[name]?.removeValue(forKey: number) } }
            home.endExternalWork()
        }
        if isFirst {
            do { try pool.dispatch { [self] in run(name) } } catch { settle(name, .failure(error)) }
        }
        return core
    }

    private func run(_ name: String) {
        let isWanted = lookups.withLock { lookups in
            if lookups.callers[name]?.isEmpty == false { return true }
            lookups.callers[name] = nil
            return false
        }
        if !isWanted { return }
        do throws(NameLookupError) { settle(name, .success(try find(name))) } catch { settle(name, .failure(error)) }
    }

    // The name is forgotten first: a retry after a failure gets a new lookup.
    private func settle(_ name: String, _ result: Result<[SocketAddress], any Error>) {
        for caller in lookups.withLock({ $0.take(name) }) { caller.settle(result) }
    }
}

/// A caller of a lookup, who has the promise. The caller's loop counts it as external work.
private struct LookupCaller {
    let host: String
    let port: UInt16
    let core = ExternalCore([SocketAddress].self)
    let home = EventLoop.ofCurrentThread.loopToNotify

    func settle(_ result: Result<[SocketAddress], any Error>) {
        guard core.claim() else { return }
        switch result {
        case .success(let addresses): core.fulfill(addresses.map { $0.with(port: port) })
        case .failure(let error as NameLookupError):
            core.reject(NameLookupError(host: host, code: error.code, systemCode: error.systemCode))
        case .failure(let error): core.reject(error)
        }
        home.endExternalWork()
    }
}
