import Reactor

/// Finds the addresses of a host name: the system's lookup, a cache of your own, or a table in a test.
public protocol NameLookup: Sendable {
    /// Finds the addresses of `host`.
    ///
    /// Called on the thread that connects. The promise is cancelled when the answer is no longer needed.
    /// - Parameters:
    ///   - host: the name, without brackets and port.
    ///   - port: the port that each address gets.
    /// - Returns: a promise of the addresses, in the order of preference.
    func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]>
}

/// The system's lookup, getaddrinfo(3): hosts file, name servers, and what nsswitch.conf configures.
///
/// getaddrinfo(3) blocks and cannot be interrupted. The lookup therefore has its own threads. A name server that does
/// not answer can delay other lookups there, but never files or computations. A cancelled lookup that waits for a
/// thread is removed. One that is running continues, and its result is ignored.
public struct SystemNameLookup: NameLookup {
    private let pool: ThreadPool

    // 4 is above zero, so the pool is made; the other branch is there because the initialiser cannot know.
    /// The one that `connect` uses, with 4 threads.
    public static let shared = (try? SystemNameLookup()) ?? SystemNameLookup(pool: .shared)

    /// A lookup with its own threads.
    /// - Parameter threads: the maximum number of concurrent lookups, at least 1.
    /// - Throws: `DispatchError.badInput`.
    public init(threads: Int = 4) throws(DispatchError) {
        pool = try ThreadPool(name: "lookup", threads: threads)
    }

    private init(pool: ThreadPool) { self.pool = pool }

    /// Finds the addresses of `host` on a thread of the lookup.
    /// - Parameters:
    ///   - host: the name, without brackets and port.
    ///   - port: the port that each address gets.
    /// - Returns: a promise of the addresses, in the order of preference. Rejected with `NameLookupError`, or with
    ///   `DispatchError.queueIsFull` if too many lookups wait.
    public func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
        Promise(on: pool) { try SocketAddress.lookUp(host, port: port) }
    }
}
