import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import Synchronization

/// A page about the running process, for a browser, and the same as text: its loops, what they wait for, its connections,
/// pools and events.
///
/// ```swift
/// let console = try Console.start(at: "unix:/run/my-server/console.sock")    // or "127.0.0.1:6669"
/// ```
///
/// `GET /` is the page, `/text` the same for `curl --unix-socket`, `/json` all of it, `/metrics` for Prometheus. The console
/// has a loop on a thread of its own, so it answers while another loop is stuck. While nobody looks, it asks each loop for
/// its counters once a second, and loops note which handler they run. It shows types, names, lines and counts, and no values.
///
/// It runs until `stop()`, or until the process ends.
public final class Console: Sendable {
    /// The address where it listens, with the actual port.
    public let address: SocketAddress
    private let remote: LoopRemote
    private let server: LoopLocal<ConsoleBox>

    /// True when there is a console: the observer of events and the probes of loops are the process's.
    private static let exists = Atomic(false)
    /// The console, which lives until `stop`.
    private static let running = LockedValue<Console?>(nil)
    /// The fewest bytes of a token.
    static var leastToken: Int { 16 }

    private init(_ address: SocketAddress, _ remote: LoopRemote, _ server: LoopLocal<ConsoleBox>) {
        (self.address, self.remote, self.server) = (address, remote, server)
    }

    /// Starts the console of this process, on a thread of its own. May be called on any thread, which waits a moment.
    ///
    /// - Parameters:
    ///   - address: `unix:/path`, whose file only the user of the process may open; or an address of this machine, such as
    ///     `127.0.0.1:6669`, which each of its users can reach. Port 0 is any free port.
    ///   - token: the secret that each request must have, as `Authorization: Bearer TOKEN`, or as the password of the
    ///     user `console`, which a browser asks for: at least 16 bytes. With it, any address is allowed; connections are not encrypted.
    /// - Returns: the console; it does not end when this object is released.
    /// - Throws: `ConsoleError`; `SocketAddress.ParseError` for a text that is no address; `SystemError` if it cannot listen
    ///   there, or if no thread can be started.
    @available(
        *, noasync,
        message: "it blocks its thread for a moment; call it before the first task, or in a synchronous function"
    )
    @discardableResult
    public static func start(at address: String, token: String? = nil) throws -> Console {
        let place = try SocketAddress(address)
        if let token, token.utf8.count < leastToken { throw ConsoleError.shortToken(least: leastToken) }
        if token == nil, !place.isUnix, !place.isLoopback { throw ConsoleError.needsToken(place) }
        guard exists.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw ConsoleError.exists
        }
        do {
            let remote = try EventLoop.spawn(name: "console")
            let server = LoopLocal { ConsoleBox() }
            let outcome = LockedValue(Result<SocketAddress, any Error>.failure(ConsoleError.exists))
            let hasBegun = Latch()
            remote.submit {
                let result = server.withValue { box in
                    Result {
                        let made = try ConsoleServer(place, token)
                        box.server = made
                        return made.address
                    }
                }
                if case .failure = result { EventLoop.current.stop() }
                outcome.withLock { $0 = result }
                hasBegun.open()
            }
            hasBegun.wait()
            let console = Console(try outcome.withLock { $0 }.get(), remote, server)
            running.withLock { $0 = console }
            return console
        } catch {
            exists.store(false, ordering: .relaxed)
            throw error
        }
    }

    /// Ends the console: closes its connections, and removes the file of its socket. A call on any thread but the
    /// console's own returns when it has ended; another console can be started then.
    @available(*, noasync, message: "it blocks its thread for a moment")
    public func stop() {
        guard remote.submit({ [server] in server.withValue { $0.server.take()?.end() } }) else { return }
        remote.join()
        // Released outside the lock.
        _ = Self.running.withLock { $0.take() }
        Self.exists.store(false, ordering: .relaxed)
    }
}

/// Why a console was not started.
public enum ConsoleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Other machines can reach the address: it needs a token.
    case needsToken(SocketAddress)
    /// The token has fewer bytes than this.
    case shortToken(least: Int)
    /// This process has a console already.
    case exists

    /// The sentence for a log.
    public var description: String {
        switch self {
        case .needsToken(let address): "a console at \(address), which other machines may reach, needs a token"
        case .shortToken(let least): "the token of a console needs at least \(least) bytes"
        case .exists: "this process has a console already"
        }
    }
}

/// The server, on the console's loop.
final class ConsoleBox { var server: ConsoleServer? }
