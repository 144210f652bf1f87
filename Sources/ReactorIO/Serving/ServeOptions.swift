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
    /// How many connections may be active at once. A connection is active until its handler has finished. Closing it
    /// may take a while longer, see `Connection.close`; during that time it lingers.
    public var maxConnections: Int
    /// The treatment of further clients; by default they wait.
    public var overflow: Overflow
    /// How many connections may linger at once, in addition to the active ones. One more ends the connection that has
    /// lingered longest as by `close(linger: .zero)`, except while the listener is drained. `nil` means
    /// `maxConnections`, but at least 64 and at most 1,024. With a group, each loop has an equal share. As many more
    /// may linger of clients that `overflow` refuses.
    public var maxLingering: Int?
    /// The memory in bytes that all connections together may take for data of their peers: input that no read has
    /// consumed; the part of it that a decoder or a filter keeps (`FrameDecoder.heldBytes`,
    /// `ConnectionFilter.heldBytes`); and writes that the kernel has not taken, as `writeQueueLimit` counts them. Bytes
    /// that a read has returned do not count. Memory is the capacity of arrays, up to twice their contents; of
    /// `SharedBytes`, which the program may own anyway, the parts that wait in queues count, once. `nil` means no limit.
    /// With a group, each loop has an equal share.
    ///
    /// Beyond it, the connections that hold the most are reset until seven eighths are held: at the end of the turn, or
    /// before the next event or job once the sum is a sixteenth above the limit. So it exceeds the limit by at most a
    /// sixteenth and what one event, job or timer adds, such as a handler that writes to every connection.
    ///
    /// The pending operations of those connections are rejected with `ENOBUFS`, which `onError` gets and `closed`
    /// reports. A handler that waits for something else is cancelled with that error. `Listener.evictedConnections`
    /// counts them. The others are served on: reading or accepting no more would stop every client for the sake of those
    /// that hold the memory, and often the rest of a request frees it.
    public var memoryLimit: Int?
    /// How the loop of the next connection is chosen, with a group.
    public var balancing: LoopGroup.Balancing
    /// The signals that stop the server: the first one drains the listener within `drainTimeout`, and a second one,
    /// which may be another of them, aborts the remaining connections at once. None by default.
    ///
    /// For 100 ms after the first signal, by the loop's clock, further ones are ignored: programs that stop others may
    /// send a signal to a process and then to its group, as `timeout` of coreutils does.
    ///
    /// They are watched from the call of `serve` on, as by `EventLoop.onSignal`. When the promise of `serve` settles,
    /// but not before those 100 ms are over, the process's previous actions are restored, so that a further SIGTERM
    /// ends the process. Several listeners stop together by `Listener.drain(_:atFirstOf:deadline:)`.
    public var stopSignals: [CInt]
    /// The time limit of the drain at the first of `stopSignals`; see `Listener.drain(deadline:)`.
    public var drainTimeout: Duration
    /// Called on the listener's loop with each of `stopSignals`, before the connections are drained, or aborted. Exit
    /// here to end with your own code at the second signal.
    public var onSignal: ((CInt) -> Void)?
    /// Prepares each connection, on its loop, before its handler is called with the connection of this promise: for
    /// instance by a handshake. The connection counts as active meanwhile, and an error is reported as the handler's.
    public var prepare: (@Sendable (Connection) -> Promise<Connection>)?
    /// Whether a handler, with a promise or async, is cancelled when its peer leaves while no read and no write is
    /// pending, such as during a query; false by default. `onError` then gets `PeerGone.ended`, or the error with which
    /// the connection has failed.
    ///
    /// A peer has left when it has ended its side, even after unread input: clients that end their side and then wait
    /// for the answer, like `nc -N`, get none. A handler that reads sees the end in its read, and is not cancelled
    /// afterwards.
    public var cancelsWhenPeerGone: Bool

    /// Each parameter is the property of its name.
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

    /// Until SIGTERM or SIGINT; the drain may take ten seconds.
    public static var untilStopped: ServeOptions { ServeOptions(stopSignals: [SIGTERM, SIGINT]) }

    /// The reason why no listener can serve with these options.
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
    /// The treatment of a client beyond `maxConnections`.
    public enum Overflow: Hashable, Sendable {
        /// It waits in the kernel's backlog until a connection has ended.
        case wait
        /// It is accepted, receives these bytes, and is closed as by `Connection.close`; no handler is called. With TLS
        /// the bytes would precede the handshake: pass none.
        case refuse([UInt8])

        /// Like the form with bytes, with a text in UTF-8.
        public static func refuse(_ text: String) -> Overflow { .refuse(Array(text.utf8)) }
    }
}
