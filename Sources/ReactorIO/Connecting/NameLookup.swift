import Promises
import Reactor

/// Finds the addresses of a host name, and decides which addresses are allowed: the system's lookup, your own cache, or
/// a table in a test.
public protocol NameLookup: Sendable {
    /// Finds the addresses of `host`. Called on the thread that connects. The promise is cancelled when nobody needs
    /// it.
    /// - Parameters:
    ///   - host: the name, without brackets and port.
    ///   - port: the port to put into each address.
    /// - Returns: a promise of the addresses, most preferred first.
    func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]>

    /// Returns true if a connect may go to `address`. By default, every address is allowed.
    ///
    /// Called on the thread that connects, before each attempt, wherever the address comes from: a name, `localhost`, a
    /// numeric host, the program, a redirect. A forbidden address fails with `EACCES`, and the next is tried. A proxy
    /// connects to addresses that this side never sees.
    func allows(_ address: SocketAddress) -> Bool
}

extension NameLookup {
    /// Returns true.
    public func allows(_ address: SocketAddress) -> Bool { true }
}

/// The system's lookup, getaddrinfo(3): hosts file, name servers, and the other sources of nsswitch.conf.
///
/// getaddrinfo(3) blocks and cannot be interrupted, so the lookup has its own threads. Equal lookups share one thread
/// and one answer, so unanswered names delay others only when they occupy all threads. When the last promise for a
/// queued lookup is cancelled, the lookup is removed. A running one continues, and later lookups of its name join it.
public struct SystemNameLookup: NameLookup {
    private let lookups: SharedLookups

    // The fallback is never used, because 16 threads are valid.
    /// The lookup that `connect` uses, with 16 threads.
    public static let shared = (try? SystemNameLookup()) ?? SystemNameLookup(pool: .shared)

    /// Makes a lookup with its own threads.
    /// - Parameter threads: the maximum number of names looked up at the same time; at least 1.
    public init(threads: Int = 16) throws(DispatchError) {
        self.init(pool: try ThreadPool(name: "lookup", threads: threads))
    }

    package init(
        threads: Int, queueLimit: Int = 65_536,
        find: @escaping @Sendable (String) throws(NameLookupError) -> [SocketAddress]
    ) throws(DispatchError) {
        lookups = SharedLookups(on: try ThreadPool(name: "lookup", threads: threads, queueLimit: queueLimit), find)
    }

    private init(pool: ThreadPool) {
        lookups = SharedLookups(on: pool) { name throws(NameLookupError) in try SocketAddress.lookUp(name, port: 0) }
    }

    /// Finds the addresses of `host` on a thread of the lookup.
    /// - Returns: a promise of the addresses, most preferred first. Rejected with `NameLookupError`, or with
    ///   `DispatchError.queueIsFull` if too many lookups wait.
    public func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> {
        if let answer = EventLoop.ofCurrentThread.kernel.table.lookUp?(host) {
            return after(answer.delay).map {
                if answer.code != 0 { throw NameLookupError(host: host, code: answer.code) }
                return answer.addresses.compactMap { SocketAddress($0)?.with(port: port) }
            }
        }
        return Promise(lookups.begin(host, port))
    }
}
