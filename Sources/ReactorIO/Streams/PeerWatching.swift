import Promises
import Reactor
import ReactorLibc

@usableFromInline
enum PeerWatching {
    /// Returns how the peer has gone; `nil` if that is not known without a system call.
    /// - Throws: `EBADF` if the connection is closed, so that nothing can be detected.
    @usableFromInline
    static func known(_ ignoringHalfClose: Bool, of connection: Connection) throws(SystemError) -> PeerGone? {
        connection.loop.assertOwner()
        guard connection.lifecycle.isOpenOrFailed else {
            throw SystemError(connection.readCall, EBADF, detail: "the connection is closed")
        }
        if let failure = connection.failure { return .failed(failure) }
        let hasEnded = connection.reader.hasEnded || connection.cold?.peerWatches.hasSeenEnd == true
        return hasEnded && !ignoringHalfClose ? .ended : nil
    }

    @usableFromInline
    static func start(_ ignoringHalfClose: Bool, of connection: Connection) -> Guarantee<PeerGone> {
        do throws(SystemError) {
            if let gone = try known(ignoringHalfClose, of: connection) { return .value(gone) }
        } catch { return Guarantee(.cancelled(with: PromiseError.asCancellation)) }
        let core = PromiseCore.pending(PeerGone.self, by: connection)
        add(PeerWatch(core: core, cancels: false, ignoringHalfClose: ignoringHalfClose), to: connection)
        return Guarantee(core)
    }

    static func add(_ watch: PeerWatch, to connection: Connection) {
        let cold = connection.ensuredColdState
        cold.peerWatches.insert(watch)
        connection.interest.watch(cold.watchedEnds)
        connection.updateInterest()
    }

    /// - Returns: false if no watch has the core `promise`.
    static func withdraw(_ promise: ObjectIdentifier, from connection: Connection) -> Bool {
        guard let cold = connection.cold, let watch = cold.peerWatches.remove(promise) else { return false }
        connection.interest.watch(cold.watchedEnds)
        connection.updateInterest()
        // Last, since the promise is released with it.
        withExtendedLifetime(watch) {}
        return true
    }

    /// - Parameters:
    ///   - gone: `nil` if this side has ended the connection.
    ///   - halfCloseOnly: true to keep the watches that ignore a half-close.
    static func settle(as gone: PeerGone?, halfCloseOnly: Bool = false, at connection: Connection) {
        guard connection.interest.watchesPeer, let cold = connection.cold else { return }
        let watches = cold.peerWatches.removeAll(halfCloseOnly: halfCloseOnly)
        let attachment = cold.attachment?.endsWithPeer == true ? cold.attachment.take() : nil
        // The state is final before a handler is called.
        connection.interest.watch(cold.watchedEnds)
        for watch in watches { watch.settle(as: gone) }
        attachment?.peerDidGo()
    }

    /// Cancels the handler, unless a pending read or write notifies it.
    static func tellHandler(of error: SystemError, at connection: Connection) {
        guard connection.lifecycle == .open, let attachment = connection.attachment else { return }
        if !hasPendingOperation(connection) { attachment.connectionDidFail(error) }
    }

    /// True when the rejection of a pending read or write notifies the handler of the connection's end.
    static func hasPendingOperation(_ connection: Connection) -> Bool {
        connection.reader.isWaiting || connection.writer.hasQueuedPromises
            || connection.cold?.filter?.deferred.isEmpty == false
    }

    /// Called after the reads and writes that the events made possible.
    @inline(never)
    static func eventArrived(_ ready: Interest, at connection: Connection) {
        // A read or a write may have met the error, and settled the watches.
        guard connection.lifecycle.isOpenOrFailed, connection.interest.watchesPeer || connection.attachment != nil
        else { return }
        if ready.contains(.error) {
            // The kernel reports an error once, so the connection stores it for later reads and writes.
            if connection.kind.contains(.socket) {
                let code = connection.socket.takeError()
                if code != 0 {
                    let error = SystemError(connection.readCall, code)
                    connection.attachment?.connectionDidFail(error)
                    return connection.fail(error)
                }
            } else if !ready.contains(.hangUp) {
                // The reader of a pipe has gone. The connection has not failed, since a FIFO may get another reader.
                return settle(as: .failed(SystemError(connection.writeCall, EPIPE)), at: connection)
            }
        }
        // Stored for watches that begin after the event.
        if !ready.isDisjoint(with: [.hangUp, .readHangUp]) { connection.cold?.peerWatches.hasSeenEnd = true }
        if ready.contains(.hangUp) {
            // Without an error both sides have ended normally, and nothing more can follow.
            connection.attachment?.peerDidEnd(bothSides: true)
            settle(as: connection.failure.map(PeerGone.failed) ?? .ended, at: connection)
        } else if ready.contains(.readHangUp) {
            connection.attachment?.peerDidEnd(bothSides: false)
            settle(as: .ended, halfCloseOnly: true, at: connection)
        } else {
            // For example a message in the error queue of an adopted socket.
            connection.noteSpuriousReadiness(.getSocketOption)
        }
    }
}

/// A watch of the peer that cancels a promise. Ends with the last reference to this object.
@usableFromInline
final class PeerWatchEnding {
    private let connection: Connection
    /// The core whose operation owns this object, and which therefore outlives it.
    private var core: ObjectIdentifier?

    @usableFromInline
    init(_ connection: Connection) { self.connection = connection }

    /// The connection retains `core`, and the operation of `core` retains this object, until the peer goes or the core
    /// settles.
    @usableFromInline
    func start(_ core: PromiseCore, _ ignoringHalfClose: Bool) {
        self.core = ObjectIdentifier(core)
        PeerWatching.add(PeerWatch(core: core, cancels: true, ignoringHalfClose: ignoringHalfClose), to: connection)
    }

    deinit {
        // Called on another thread only while the loop ends, which ends the connection itself.
        if let core, connection.loop.isUsableHere { _ = PeerWatching.withdraw(core, from: connection) }
    }
}

struct PeerWatch {
    let core: PromiseCore
    /// True when the peer's end cancels `core` instead of fulfilling it.
    let cancels: Bool
    let ignoringHalfClose: Bool

    /// - Parameter gone: `nil` if this side has ended the connection, which does not cancel the work.
    func settle(as gone: PeerGone?) {
        guard let gone else { return cancels ? () : core.rejectCancelled(with: nil, at: nil) }
        if !cancels { return core.fulfill(gone) }
        // If `core` no longer waits, the work has settled in time, even if its notification is still queued.
        if core.isWaiting { core.cancel(with: gone) }
    }
}

/// The watches of one peer's end, keyed by core, since each of many pipelined requests may have one that ends
/// separately.
struct PeerWatches {
    private var watches: [ObjectIdentifier: (watch: PeerWatch, number: Int)] = [:]
    private var nextNumber = 0
    private var strictCount: Int32 = 0
    var hasSeenEnd = false

    var isEmpty: Bool { watches.isEmpty }

    var ends: Interest { isEmpty ? [] : strictCount > 0 ? .peerGone : [.error, .hangUp] }

    mutating func insert(_ watch: PeerWatch) {
        watches[ObjectIdentifier(watch.core)] = (watch, nextNumber)
        nextNumber += 1
        if !watch.ignoringHalfClose { strictCount += 1 }
    }

    mutating func remove(_ core: ObjectIdentifier) -> PeerWatch? {
        guard let watch = watches.removeValue(forKey: core)?.watch else { return nil }
        if !watch.ignoringHalfClose { strictCount -= 1 }
        return watch
    }

    /// Removes watches, and returns them in the order of their insertion.
    mutating func removeAll(halfCloseOnly: Bool) -> [PeerWatch] {
        let found = watches.values.filter { !halfCloseOnly || !$0.watch.ignoringHalfClose }
            .sorted { $0.number < $1.number }.map(\.watch)
        for watch in found { _ = remove(ObjectIdentifier(watch.core)) }
        return found
    }
}
