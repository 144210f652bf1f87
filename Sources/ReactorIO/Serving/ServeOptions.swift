import Promises
import Reactor
import ReactorLibc

/// The limits of a server, and the signals that stop it.
///
/// ```swift
/// listener.serve(ServeOptions(maxConnections: 10_000, stopSignals: [SIGTERM, SIGINT])) { connection in
///     connection.forEachChunk { connection.write($0) }
/// }
/// ```
public struct ServeOptions {
    /// The maximum number of active connections, whose handlers have not finished. Afterwards they linger while they
    /// close; see `Connection.close`.
    public var maxConnections: Int
    /// The treatment of clients beyond `maxConnections`. By default they wait.
    public var overflow: Overflow
    /// The maximum number of lingering connections, in addition to the active ones. One more closes the one that has
    /// lingered longest with `close(linger: .zero)`, except during a drain. `nil` means `maxConnections`, clamped to
    /// 64…1,024. With a group, each loop has an equal share. Clients that `overflow` has refused have a limit of their
    /// own, of the same size.
    public var maxLingering: Int?
    /// The maximum memory, in bytes, for data of all connections' peers: unconsumed input, bytes that a decoder or a
    /// filter keeps from it (`FrameDecoder.heldBytes`, `ConnectionFilter.heldBytes`), and writes that the kernel has
    /// not accepted, as `writeQueueLimit` counts them. Bytes that a read has returned do not count. Arrays count by
    /// capacity, up to twice their contents. `SharedBytes`, which the program may own anyway, count once, however many
    /// of their parts wait in queues. `nil` means no limit. With a group, each loop has an equal share.
    ///
    /// Above the limit, the connections that hold the most are reset until the sum is seven eighths of it: at the end
    /// of the turn, or before the next event or job once the sum is a sixteenth above the limit. So the excess is at
    /// most a sixteenth plus the memory of one event, job or timer, such as a handler that writes to every connection.
    ///
    /// Pending operations of these connections are rejected with `ENOBUFS`, which `onError` gets and `closed` reports.
    /// A handler that waits for something else is cancelled with that error. `Listener.evictedConnections` counts these
    /// connections. All others are still served: to stop reading or accepting would stop every client, although the
    /// rest of a request often frees memory.
    public var memoryLimit: Int?
    /// The policy that chooses the loop for the next connection, with a group.
    public var balancing: LoopGroup.Balancing
    /// The signals that stop the server. The first signal drains the listener within `drainTimeout`. A second, the same
    /// or another, aborts the remaining connections. None by default.
    ///
    /// For 100 ms after the first signal, by the loop's clock, further ones are ignored: programs that stop others may
    /// signal a process and then its group, as `timeout` from coreutils does.
    ///
    /// The signals are watched from the call of `serve` on, as by `EventLoop.onSignal`. When the promise of `serve`
    /// settles, but not before those 100 ms have passed, the process's previous actions are restored, so that a further
    /// SIGTERM ends the process. For several listeners see `Listener.drain(_:atFirstOf:deadline:)`.
    public var stopSignals: [CInt]
    /// The time limit of the drain at the first of `stopSignals`.
    public var drainTimeout: Duration
    /// The closure called with each of `stopSignals`, on the listener's loop, before the drain or abort. It may exit
    /// with its own code at the second signal.
    public var onSignal: ((CInt) -> Void)?
    /// The closure that prepares each connection on its loop, for instance by a handshake. Its promise yields the
    /// connection for the handler. The connection is already active, and an error is reported like the handler's.
    public var prepare: (@Sendable (Connection) -> Promise<Connection>)?
    /// True to cancel a handler when its peer leaves while no read and no write is pending, for instance during a
    /// query. False by default. `onError` then gets `PeerGone.ended` or the connection's error.
    ///
    /// A peer has left when it has ended its side, even if unread input remains. So clients that end their side and
    /// then wait for the answer, like `nc -N`, get none. A handler whose read has seen the end is not cancelled
    /// afterwards.
    public var cancelsWhenPeerGone: Bool

    /// Sets the property that each parameter names.
    public init(
        maxConnections: Int = .max, overflow: Overflow = .wait, maxLingering: Int? = nil,
        memoryLimit: Int? = nil,
        balancing: LoopGroup.Balancing = .leastConnections, stopSignals: [CInt] = [],
        drainTimeout: Duration = .seconds(10), onSignal: ((CInt) -> Void)? = nil,
        prepare: (@Sendable (Connection) -> Promise<Connection>)? = nil, cancelsWhenPeerGone: Bool = false
    ) {
        (self.maxConnections, self.overflow, self.maxLingering) = (maxConnections, overflow, maxLingering)
        (self.memoryLimit, self.balancing, self.stopSignals) = (memoryLimit, balancing, stopSignals)
        (self.drainTimeout, self.onSignal) = (drainTimeout, onSignal)
        (self.prepare, self.cancelsWhenPeerGone) = (prepare, cancelsWhenPeerGone)
    }

    /// Options to serve until SIGTERM or SIGINT, with ten seconds for the drain.
    public static var untilStopped: ServeOptions { ServeOptions(stopSignals: [SIGTERM, SIGINT]) }

    var refusal: SystemError? {
        if maxConnections < 1 { return SystemError(.accept, EINVAL, detail: "maxConnections: \(maxConnections)") }
        if let maxLingering, maxLingering < 0 {
            return SystemError(.accept, EINVAL, detail: "maxLingering: \(maxLingering)")
        }
        return nil
    }

    func lingeringLimit(loops: Int = 1) -> Int {
        let limit = maxLingering ?? min(max(maxConnections, 64), 1024)
        // Rounds up without a sum, which could overflow.
        return limit / loops + (limit % loops == 0 ? 0 : 1)
    }
}

extension ServeOptions {
    /// The treatment of clients beyond `maxConnections`.
    public enum Overflow: Hashable, Sendable {
        /// The client waits in the kernel's backlog until a connection has ended.
        case wait
        /// The client receives these bytes, and its connection is closed as by `Connection.close`. The handler is not
        /// called. With TLS pass no bytes, because they would precede the handshake.
        case refuse([UInt8])

        /// Refuses with the UTF-8 bytes of a string.
        public static func refuse(_ text: String) -> Overflow { .refuse(Array(text.utf8)) }
    }
}
