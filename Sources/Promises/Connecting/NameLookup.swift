import Reactor

/// What finds the addresses of a host's name: the system's, a cache of your own, a table in a test.
public protocol NameLookup: Sendable {
    /// The addresses of `host`, each with `port`, the preferred first. Called on the thread that connects; the promise is
    /// cancelled when nobody wants the answer any more.
    func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]>
}

/// The system's lookup, getaddrinfo(3): hosts file, name servers, and whatever nsswitch.conf says.
///
/// That call blocks and cannot be broken off. So it has threads of its own, on which a name server that does not answer
/// delays other lookups at worst, and never files or computations. Cancelled, a lookup that waits for a thread is
/// dropped; one that runs goes on, unheard.
public struct SystemNameLookup: NameLookup {
    private let pool: ThreadPool

    // 4 is above zero, so the pool is made; the other branch is there because the initialiser cannot know.
    /// The one that `connect` uses, with 4 threads.
    public static let shared = (try? SystemNameLookup()) ?? SystemNameLookup(pool: .shared)

    /// One with threads of its own.
    /// - Parameter threads: how many lookups may run at a time; 1 at least.
    /// - Throws: `DispatchError.badInput`.
    public init(threads: Int = 4) throws(DispatchError) {
        pool = try ThreadPool(name: "lookup", threads: threads)
    }

    private init(pool: ThreadPool) { self.pool = pool }

    /// Rejected with `NameLookupError`, or `DispatchError.queueIsFull` if very many wait.
    public func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
        pool.async(.promise) { try SocketAddress.lookUp(host, port: port) }
    }
}
