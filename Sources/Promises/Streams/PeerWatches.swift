import Glibc
import Reactor

/// A promise that waits for the peer's end.
struct PeerWatch {
    let core: PromiseCore
    /// Whether the peer's end cancels `core` instead of fulfilling it.
    let cancels: Bool
    let ignoringHalfClose: Bool

    /// - Parameter gone: `nil` if this side has ended the connection, which does not cancel the work.
    func settle(as gone: PeerGone?) {
        guard let gone else { return cancels ? () : core.rejectCancelled(with: nil, at: nil) }
        if !cancels { return core.fulfill(gone) }
        // Settled work is in time, though its notification may still be queued: it is no longer waited for.
        if core.isWaiting { core.cancel(with: gone) }
    }
}

/// The watches of one peer's end. By core, since each ends separately: each of many pipelined requests may have one.
struct PeerWatches {
    private var watches: [ObjectIdentifier: (watch: PeerWatch, number: Int)] = [:]
    private var nextNumber = 0
    /// The number of watches that do not ignore a half-close.
    private var strictCount: Int32 = 0
    /// Whether the poller has reported the peer's end.
    var hasSeenEnd = false

    var isEmpty: Bool { watches.isEmpty }

    /// The events that the poller must report for them.
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

    /// Removes those that a half-close ends, or all, and returns them in order of arrival.
    mutating func removeAll(halfCloseOnly: Bool) -> [PeerWatch] {
        let found = watches.values.filter { !halfCloseOnly || !$0.watch.ignoringHalfClose }
            .sorted { $0.number < $1.number }.map(\.watch)
        for watch in found { _ = remove(ObjectIdentifier(watch.core)) }
        return found
    }
}
