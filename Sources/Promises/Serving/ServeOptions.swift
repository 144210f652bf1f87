import Glibc
import Reactor

/// How a listener serves: its limits, and what stops it.
///
/// ```swift
/// listener.serve(ServeOptions(maxConnections: 10_000, stopSignals: [SIGTERM, SIGINT])) { connection in
///     connection.forEachChunk { connection.write($0) }
/// }
/// ```
public struct ServeOptions {
    /// How many connections may be active at once. A connection is active until its handler has finished. Closing it may take
    /// a while longer, see `Connection.close`; during that time it lingers.
    public var maxConnections: Int
    /// What becomes of further clients: they wait, by default.
    public var overflow: Overflow
    /// How many connections may linger at once, in addition to the active ones. One more ends the connection that has
    /// lingered longest as by `close(linger: .zero)`, except while the listener is drained. `nil` means
    /// `maxConnections`, but at least 64 and at most 1,024. With a group, each loop has an equal share. As many more may linger
    /// of clients that `overflow` refuses.
    public var maxLingering: Int?
    /// How many bytes of memory the connections may take together for what their peers have sent and not taken: input that
    /// no read has consumed; what a decoder or a filter keeps of it (`FrameDecoder.heldBytes`, `ConnectionFilter.heldBytes`);
    /// and writes that the kernel has not taken, as `writeQueueLimit` counts them. What a read has returned is the program's,
    /// and does not count. Memory counts by the capacity of its arrays, which may be twice what is in them. `nil` means no
    /// limit. With a group, each loop has an equal share.
    ///
    /// When they hold more, at the end of a turn, those that hold the most are reset until seven eighths are held: what
    /// waits for such a connection is rejected with `ENOBUFS`, which `onError` gets, and `closed` reports it. A handler
    /// that waits for something else is cancelled with that error.
    /// `Listener.evictedConnections` counts them. The others are served on as before: to read or to accept no more would
    /// stop every client for the sake of those that hold the memory, and often what frees it is the rest of a request.
    public var memoryLimit: Int?
    /// How the loop of the next connection is chosen, with a group.
    public var balancing: LoopGroup.Balancing
    /// The signals that stop the server: the first one drains the listener within `drainTimeout`, and a second one, which
    /// may be another of them, aborts the remaining connections at once. None by default.
    ///
    /// For 100 ms after the first signal, by the loop's clock, further ones are ignored: programs that stop others may send
    /// a signal to a process and then to its group, as `timeout` of coreutils does.
    ///
    /// They are watched from the call of `serve` on, as by `EventLoop.onSignal`. When the promise of `serve` settles, and
    /// not before those 100 ms are over, the process's own actions are restored, so that a further SIGTERM ends the process.
    /// Several listeners stop together by `Listener.drain(_:atFirstOf:deadline:)`.
    public var stopSignals: [CInt]
    /// How long the drain at the first of `stopSignals` may take; see `Listener.drain(deadline:)`.
    public var drainTimeout: Duration
    /// Is called on the listener's loop with each of `stopSignals`, before the connections are drained, or aborted. A
    /// server that is to end otherwise at the second signal, such as with an exit code, does so here.
    public var onSignal: ((CInt) -> Void)?
    /// Begins each connection, on its loop, before its handler is called with the connection of this promise: a
    /// handshake, for instance. The connection counts as active meanwhile, and an error is one of the handler.
    public var prepare: (@Sendable (Connection) -> Promise<Connection>)?
    /// Whether a handler, with a promise or async, is cancelled when its peer has gone while no read and no write waits, such
    /// as during a query; false by default. `onError` then gets `PeerGone.ended`, or the error with which the connection has
    /// failed.
    ///
    /// A peer has gone when it has ended its side, even behind input that nobody has read: clients that end their side and
    /// then wait for the answer, as `nc -N` does, get none. A handler that reads learns of the end by its read, and is not
    /// cancelled afterwards.
    public var cancelsWhenPeerGone: Bool

    /// - Parameters:
    ///   - maxConnections: how many connections may be active at once.
    ///   - overflow: what becomes of further clients.
    ///   - maxLingering: how many connections may linger at once.
    ///   - memoryLimit: how many bytes the connections may hold together.
    ///   - balancing: how the loop of the next connection is chosen, with a group.
    ///   - stopSignals: the signals that stop the server.
    ///   - drainTimeout: how long the drain at the first signal may take.
    ///   - onSignal: is called with each signal.
    ///   - prepare: begins each connection before its handler is called.
    ///   - cancelsWhenPeerGone: whether a handler is cancelled when its peer has gone.
    public init(
        maxConnections: Int = .max, overflow: Overflow = .wait, maxLingering: Int? = nil,
        memoryLimit: Int? = nil,
        balancing: LoopGroup.Balancing = .leastConnections, stopSignals: [CInt] = [],
        drainTimeout: Duration = .seconds(10), onSignal: ((CInt) -> Void)? = nil,
        prepare: (@Sendable (Connection) -> Promise<Connection>)? = nil, cancelsWhenPeerGone: Bool = false
    ) {
        self.maxConnections = maxConnections
        self.overflow = overflow
        self.maxLingering = maxLingering
        self.memoryLimit = memoryLimit
        self.balancing = balancing
        self.stopSignals = stopSignals
        self.drainTimeout = drainTimeout
        self.onSignal = onSignal
        self.prepare = prepare
        self.cancelsWhenPeerGone = cancelsWhenPeerGone
    }

    /// Until SIGTERM or SIGINT; the drain may take ten seconds.
    public static var untilStopped: ServeOptions { ServeOptions(stopSignals: [SIGTERM, SIGINT]) }

    /// The reason why no listener can serve so.
    var refusal: SystemError? {
        if maxConnections < 1 { return SystemError(.accept, EINVAL, detail: "maxConnections: \(maxConnections)") }
        if let maxLingering, maxLingering < 0 {
            return SystemError(.accept, EINVAL, detail: "maxLingering: \(maxLingering)")
        }
        return nil
    }

    /// How many connections may linger on each of `loops` loops.
    func lingeringLimit(loops: Int = 1) -> Int {
        let limit = maxLingering ?? min(max(maxConnections, 64), 1024)
        // Rounded up, without a sum that could overflow.
        return limit / loops + (limit % loops == 0 ? 0 : 1)
    }

    /// `nil` if clients wait.
    var refusedClients: RefusedClients? {
        if case .refuse(let answer) = overflow { RefusedClients(answer, limit: lingeringLimit()) } else { nil }
    }
}
