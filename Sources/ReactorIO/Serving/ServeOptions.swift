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
    /// The maximum number of active connections: until their handlers have finished. They linger while they close; see
    /// `Connection.close`.
    public var maxConnections: Int
    /// The treatment of further clients. By default they wait.
    public var overflow: Overflow
    /// The maximum number of lingering connections, in addition to the active ones. One more ends the longest one as by
    /// `close(linger: .zero)`, except during a drain. `nil` means `maxConnections`, but at least 64 and at most 1,024.
    /// With a group, each loop has an equal share. As many clients that `overflow` has refused may also linger.
    public var maxLingering: Int?
    /// The maximum memory, in bytes, of all connections' data of their peers: unconsumed input, the part of it that a
    /// decoder or a filter keeps (`FrameDecoder.heldBytes`, `ConnectionFilter.heldBytes`), and writes that the kernel
    /// has not taken, as `writeQueueLimit` counts them. Bytes that a read has returned do not count. Arrays count by
    /// capacity, up to twice their contents. `SharedBytes`, which the program may own anyway, count once, with the
    /// parts that wait in queues. `nil` means no limit. With a group, each loop has an equal share.
    ///
    /// Beyond it, the connections that hold the most are reset until seven eighths are held: at the end of the turn, or
    /// before the next event or job once the sum is a sixteenth above the limit. So the excess is at most a sixteenth
    /// plus the memory of one event, job or timer, such as a handler that writes to every connection.
    ///
    /// Their pending operations are rejected with `ENOBUFS`, which `onError` gets and `closed` reports. A handler that
    /// waits for something else is cancelled with that error. `Listener.evictedConnections` counts them. The others are
    /// still served: to stop reading or accepting would stop every client, and often the rest of a request frees
    /// memory.
    public var memoryLimit: Int?
    /// The choice of the next connection's loop in a group.
    public var balancing: LoopGroup.Balancing
    /// The signals that stop the server. The first drains the listener within `drainTimeout`, and a second, of any
    /// kind, aborts the remaining connections. None by default.
    ///
    /// For 100 ms after the first, by the loop's clock, further signals are ignored: programs that stop others may
    /// signal a process and then its group, like `timeout` of coreutils.
    ///
    /// They are watched from the call of `serve` on, as by `EventLoop.onSignal`. When the promise of `serve` settles,
    /// but not within those 100 ms, the process's previous actions are restored, so that a further SIGTERM ends the
    /// process. For several listeners see `Listener.drain(_:atFirstOf:deadline:)`.
    public var stopSignals: [CInt]
    /// The time limit of the drain at the first of `stopSignals`.
    public var drainTimeout: Duration
    /// Called on the listener's loop with each of `stopSignals`, before the drain or abort. Exit here to end with your
    /// own code at the second signal.
    public var onSignal: ((CInt) -> Void)?
    /// Prepares each connection, on its loop, before its handler gets the connection of this promise: by a handshake,
    /// for instance. The connection is already active, and an error is reported as the handler's.
    public var prepare: (@Sendable (Connection) -> Promise<Connection>)?
    /// True to cancel a handler when its peer leaves while no read and no write is pending, such as during a query.
    /// False by default. `onError` then gets `PeerGone.ended`, or the connection's error.
    ///
    /// A peer has left when it has ended its side, even after unread input: clients that end their side and then wait
    /// for the answer, like `nc -N`, get none. A handler that sees the end in its read is not cancelled afterwards.
    public var cancelsWhenPeerGone: Bool

    /// Sets the property of each parameter's name.
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

    /// Options to serve until SIGTERM or SIGINT. The drain may take ten seconds.
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
        // Rounded up, without a sum that could overflow.
        return limit / loops + (limit % loops == 0 ? 0 : 1)
    }
}

extension ServeOptions {
    /// The treatment of clients beyond `maxConnections`.
    public enum Overflow: Hashable, Sendable {
        /// The client waits in the kernel's backlog until a connection has ended.
        case wait
        /// The client receives these bytes, and is closed as by `Connection.close`, without a call of the handler. With
        /// TLS they would precede the handshake, so pass none.
        case refuse([UInt8])

        /// Refuses with a text in UTF-8.
        public static func refuse(_ text: String) -> Overflow { .refuse(Array(text.utf8)) }
    }
}
