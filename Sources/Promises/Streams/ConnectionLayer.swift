import Reactor

/// What stands between the descriptor of a connection and its reads and writes: a filter. A connection has one at a time, on
/// the path `.filtered`, and calls it on the loop's thread.
protocol ConnectionLayer: ConnectionPart {
    // MARK: Reading

    /// The number of bytes that it has delivered to the reads.
    var deliveredCount: Int { get }
    /// Whether the poller is to report input, for the read that waits or for the layer alone.
    var pollsForInput: Bool { get }
    /// Whether the peer has ended its side of the descriptor, or the descriptor has failed.
    var sourceHasEnded: Bool { get }
    /// Whether the peer waits for something, or this side does, that no read shows.
    var isBusy: Bool { get }
    /// Whether it takes no reads and writes yet.
    var isInHandshake: Bool { get }
    /// What it holds in memory, beside what is in the buffers of the connection.
    var heldMemory: Int { get }
    /// Reads the descriptor once.
    func descriptorIsReadable()
    /// The promise of a read was cancelled.
    func readWasCancelled(_ promise: PromiseCore)

    // MARK: Writing

    var takesWrites: Bool { get }
    func write(_ bytes: UnsafeRawBufferPointer) -> Promise<Void>
    /// The writes that are not in the connection's queue yet.
    var deferred: DeferredWrites { get set }

    // MARK: Ending

    /// Queues what ends the stream behind all writes.
    /// - Returns: false if that must wait. Then the layer ends the connection's side when it can.
    func queueEnd() -> Bool
    /// The descriptor is closed.
    func connectionDidEnd(_ failure: SystemError?)
}

extension ConnectionLayer {
    /// Takes the promises of the deferred writes, which are not sent any more.
    func takeDeferredPromises() -> [PromiseCore] { deferred.takeAll().map(\.promise) }
}

/// The way of a connection's bytes.
enum ConnectionPath: UInt8 {
    /// Between the descriptor and the reads and writes.
    case direct
    /// Through the layer.
    case filtered
    /// Everything is sent: what arrives is discarded.
    case lingering
}
