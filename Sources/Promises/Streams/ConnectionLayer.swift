import Reactor

/// A layer between the descriptor of a connection and its reads and writes: a filter. A connection has one at a time,
/// on the path `.filtered`, and calls it on the loop's thread.
protocol ConnectionLayer: AnyObject {
    // MARK: Reading

    var deliveredCount: Int { get }
    /// Whether the poller should report input, for a pending read or for the layer alone.
    var pollsForInput: Bool { get }
    /// Whether the peer has ended its side of the descriptor, or the descriptor has failed.
    var sourceHasEnded: Bool { get }
    /// Whether either side waits for something that no read shows.
    var isBusy: Bool { get }
    /// Whether it does not take reads and writes yet.
    var isInHandshake: Bool { get }
    /// Its memory, apart from the connection's buffers.
    var heldMemory: Int { get }
    func descriptorIsReadable()
    func readWasCancelled(_ promise: PromiseCore)

    // MARK: Writing

    var takesWrites: Bool { get }
    func write(_ bytes: UnsafeRawBufferPointer) -> Promise<Void>
    /// Writes that are not in the connection's queue yet.
    var deferred: DeferredWrites { get set }

    // MARK: Ending

    /// Queues the end of the stream after all writes.
    /// - Returns: false if that must wait. Then the layer ends the connection's side when it can.
    func queueEnd() -> Bool
    func cancelTimer()
    /// The descriptor is closed.
    func connectionDidEnd(_ failure: SystemError?)
}

extension ConnectionLayer {
    /// Takes the promises of the deferred writes, which are not sent any more.
    func takeDeferredPromises() -> [PromiseCore] { deferred.takeAll().map(\.promise) }
}

/// The path of a connection's bytes.
enum ConnectionPath: UInt8 {
    /// Directly between the descriptor and the reads and writes.
    case direct
    /// Through the layer.
    case filtered
    /// This side is closing: input is discarded.
    case discarding
}
