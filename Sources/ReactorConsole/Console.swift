import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import Synchronization

/// A page about the running process, for a browser or as text: its loops and what they wait for, connections, pools and
/// events.
///
/// ```swift
/// let console = try Console.start(at: "unix:/run/my-server/console.sock")    // or "127.0.0.1:6669"
/// ```
///
/// `GET /` is the page, `/text` the same for `curl --unix-socket`, `/json` all of it, `/metrics` for Prometheus. The
/// console's own thread answers while another loop is stuck. Without visitors, it asks each loop for its counters once
/// a second, and loops note their running handler. It shows types, names, lines and counts, but no values.
///
/// It runs until `stop()` or the process's end.
public final class Console: Sendable {
    /// The listening address, with the actual port.
    public let address: SocketAddress
    private let remote: LoopRemote
    private let server: LoopLocal<ConsoleBox>

    /// True when there is a console, because it uses the process's observer of events and the loops' probes.
    private static let exists = Atomic(false)
    /// The console, until `stop`.
    private static let running = LockedValue<Console?>(nil)
    /// A token's fewest bytes.
    static var leastToken: Int { 16 }

    private init(_ address: SocketAddress, _ remote: LoopRemote, _ server: LoopLocal<ConsoleBox>) {
        (self.address, self.remote, self.server) = (address, remote, server)
    }

    /// Starts this process's console on its own thread. Any thread may call it, and waits a moment.
    ///
    /// - Parameters:
    ///   - address: `unix:/path`, whose file only the process's user may open, or an address of this machine, such as
    ///     `127.0.0.1:6669`, which all its users can reach. Port 0 is any free port.
    ///   - token: the secret of each request, at least 16 bytes, as `Authorization: Bearer TOKEN`, or as the password
    ///     of the user `console`, which a browser asks for. With it, any address is allowed; connections are not
    ///     encrypted.
    /// - Returns: the console, which outlives this object.
    /// - Throws: `ConsoleError`; `SocketAddress.ParseError` for an invalid address; `SystemError` if it cannot listen
    ///   there, or no thread can be started.
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

    /// Ends the console: closes its connections, and removes its socket's file. Except on the console's own thread,
    /// returns at its end; another console can then be started.
    @available(*, noasync, message: "it blocks its thread for a moment")
    public func stop() {
        guard remote.submit({ [server] in server.withValue { $0.server.take()?.end() } }) else { return }
        remote.join()
        // Released outside the lock.
        _ = Self.running.withLock { $0.take() }
        Self.exists.store(false, ordering: .relaxed)
    }
}

/// The reason that a console was not started.
public enum ConsoleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Other machines can reach the address, so it needs a token.
    case needsToken(SocketAddress)
    /// The token has fewer bytes than this.
    case shortToken(least: Int)
    /// This process already has a console.
    case exists

    /// A sentence for a log.
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
