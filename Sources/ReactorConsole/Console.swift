import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import Synchronization

/// A page about the running process, for a browser or as text. Shows the loops and what they wait for, connections,
/// pools and events.
///
/// ```swift
/// let console = try Console.start(at: "unix:/run/my-server/console.sock")    // or "127.0.0.1:6669"
/// ```
///
/// `GET /` is the page, `/text` the same for `curl --unix-socket`, `/json` all data, and `/metrics` is for Prometheus.
/// The console's own thread answers even while another loop is stuck. Without visitors, the console asks each loop for
/// its counters once a second, and loops note their running handler. It shows types, names, lines and counts, but no
/// values.
///
/// It runs until `stop()` or the process's end.
public final class Console: Sendable {
    /// The listening address, with the actual port.
    public let address: SocketAddress
    private let remote: LoopRemote
    private let server: LoopLocal<ConsoleBox>

    /// True while a console exists. Only one may, because it uses the process's observer of events and the loops'
    /// probes.
    private static let exists = Atomic(false)
    private static let running = LockedValue<Console?>(nil)
    /// The minimum bytes in a token.
    static var leastToken: Int { 16 }

    private init(_ address: SocketAddress, _ remote: LoopRemote, _ server: LoopLocal<ConsoleBox>) {
        (self.address, self.remote, self.server) = (address, remote, server)
    }

    /// Starts this process's console on its own thread, blocking briefly. Any thread may call it.
    ///
    /// - Parameters:
    ///   - address: `unix:/path`, whose file only the process's user may open, or an address of this machine, such as
    ///     `127.0.0.1:6669`, which all the machine's users can reach. Port 0 means any free port.
    ///   - token: the secret in each request, at least 16 bytes: as `Authorization: Bearer TOKEN`, or as the password
    ///     for the user `console`, which a browser asks for. With a token, any address is allowed. Connections are not
    ///     encrypted.
    /// - Returns: the console, which outlives this object.
    /// - Throws: `ConsoleError`; `SocketAddress.ParseError` for an invalid address; `SystemError` if the console cannot
    ///   listen there, or its thread cannot be started.
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

    /// Stops the console: closes its connections, and removes its socket's file. Except on the console's own thread,
    /// returns when it has ended. Then another console can be started.
    @available(*, noasync, message: "it blocks its thread for a moment")
    public func stop() {
        guard remote.submit({ [server] in server.withValue { $0.server.take()?.end() } }) else { return }
        remote.join()
        _ = Self.running.withLock { $0.take() }
        Self.exists.store(false, ordering: .relaxed)
    }
}

/// The reason why a console was not started.
public enum ConsoleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Other machines can reach the address, so it needs a token.
    case needsToken(SocketAddress)
    /// The token has fewer than `least` bytes.
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

final class ConsoleBox { var server: ConsoleServer? }
