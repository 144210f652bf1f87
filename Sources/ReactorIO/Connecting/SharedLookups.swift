import Promises
import Reactor

/// Lookups in progress, by name. Equal lookups, from any threads, share one call of getaddrinfo(3).
final class SharedLookups: Sendable {
    /// Returns addresses with port 0.
    typealias Find = @Sendable (String) throws(NameLookupError) -> [SocketAddress]

    private let pool: ThreadPool
    private let find: Find
    private let lookups = LockedValue(Lookups())

    private struct Lookup {
        let number: Int
        /// The callers, keyed in order of arrival. Empty if all cancelled while a thread looks the name up.
        var callers: [Int: LookupCaller] = [:]
    }

    /// Keyed by names in lower case.
    private struct Lookups {
        var all: [String: Lookup] = [:]
        /// The names that wait for a thread, keyed by the numbers of their lookups. Each has a caller.
        var waiting = LinkedOrder<String>()
        /// The number of jobs in the pool's queue, at least one per waiting name. A job takes the name that has waited
        /// longest. So the job for an abandoned name serves the next one.
        var jobs = 0
        var last = 0

        mutating func add(_ caller: LookupCaller, of name: String) -> (number: Int, needsJob: Bool) {
            last += 1
            if all[name] == nil {
                all[name] = Lookup(number: last)
                waiting.append(name, last)
            }
            all[name]?.callers[last] = caller
            let needsJob = jobs < waiting.count
            if needsJob { jobs += 1 }
            return (last, needsJob)
        }

        mutating func remove(_ caller: Int, of name: String) {
            all[name]?.callers[caller] = nil
            guard let lookup = all[name], lookup.callers.isEmpty else { return }
            if waiting.remove(lookup.number) != nil { all[name] = nil }
        }

        /// Called by a job that has begun.
        mutating func next() -> String? {
            jobs -= 1
            return waiting.popFirst()
        }

        /// - Returns: the name that has lost its job.
        mutating func refused() -> String? {
            jobs -= 1
            return jobs < waiting.count ? waiting.popLast() : nil
        }

        mutating func take(_ name: String) -> [LookupCaller] {
            (all.removeValue(forKey: name)?.callers ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        }
    }

    init(on pool: ThreadPool, _ find: @escaping Find) { (self.pool, self.find) = (pool, find) }

    func begin(_ host: String, _ port: UInt16) -> PromiseCore {
        let caller = LookupCaller(host: host, port: port)
        caller.home.beginExternalWork()
        let core = caller.core.traced(root: "addresses", Promise<[SocketAddress]>.self, #fileID, #line)
        // In a forked child, no thread finishes the parent's lookups, and a lost thread may hold the lock.
        if pool.isForked {
            caller.settle(.failure(DispatchError.poolIsForked(name: pool.name)))
            return core
        }
        let name = String(decoding: host.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        let (number, needsJob) = lookups.withLock { $0.add(caller, of: name) }
        let home = caller.home
        caller.core.onCancel = { [self] core, error in
            core.rejectCancelled(with: error, at: nil)
            if !pool.isForked { lookups.withLock { $0.remove(number, of: name) } }
            home.endExternalWork()
        }
        if needsJob {
            do { try pool.dispatch { [self] in run() } } catch {
                if let name = lookups.withLock({ $0.refused() }) { settle(name, .failure(error)) }
            }
        }
        return core
    }

    private func run() {
        guard let name = lookups.withLock({ $0.next() }) else { return }
        do throws(NameLookupError) { settle(name, .success(try find(name))) } catch { settle(name, .failure(error)) }
    }

    // Forgets the name first, so that a retry after a failure gets a new lookup.
    private func settle(_ name: String, _ result: Result<[SocketAddress], any Error>) {
        for caller in lookups.withLock({ $0.take(name) }) { caller.settle(result) }
    }
}

/// The caller's loop counts it as external work.
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
