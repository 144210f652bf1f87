import Glibc
import Reactor

// What a connection with a filter waits for at its descriptor, and when it must not read on.

extension Connection {
    /// The memory that output which belongs to no write may take before the connection reads no more.
    private static var ownOutputLimit: Int { 65_536 }
    /// The memory that unread plain bytes, or output which belongs to no write, may take while the filter needs input.
    private static var limitWhileInputIsNeeded: Int { 1 << 20 }

    /// Sets the interest of a connection that has a filter, or that lingers.
    @inline(never)
    func updateDivertedInterest() {
        var wanted = Interest(rawValue: UInt32(watchedEnds))
        if lifecycle == .lingering || readsDiverted { wanted.insert(.reading) }
        if writer.wantsRoom { wanted.insert(.writing) }
        if wanted.isEmpty { wanted = restingInterest }
        setInterest(wanted)
    }

    /// Whether the connection reads: for the read that waits, or for its filter alone.
    var readsDiverted: Bool { (reader.isWaiting || readsForFilter) && !isFilterBlocked }

    /// Whether the connection reads though no read waits, because the filter needs input for deferred writes.
    var readsForFilter: Bool {
        guard let filter = cold?.filter, filter.hasDeferredWrites else { return false }
        return isCurrent(filter) && !filter.inputHasEnded && failure == nil
    }

    /// Whether the connection must not read, because the kernel does not take output that belongs to no write. A filter that
    /// needs input is not blocked: the peer may take that output only after it has sent the input.
    private var isFilterBlocked: Bool {
        guard writer.isQueued, let filter = cold?.filter, !filter.needsInput else { return false }
        return filter.weightOfOwnOutput(after: bytesSent) >= Self.ownOutputLimit
    }

    /// The error of a filter that needs input, and for which the connection cannot read on without limit. Waiting instead
    /// could last forever: a program may read only when its write is done, and a peer only when its input is taken.
    func shortage(of filter: InstalledFilter) -> SystemError? {
        guard filter.needsInput else { return nil }
        let limit = Self.limitWhileInputIsNeeded
        // A read that waits for a large frame has asked for these bytes.
        if bufferedByteCount > limit && (filter.handshake != nil || !reader.isWaiting) {
            let detail =
                "\(bufferedByteCount) bytes were received that no read has taken, and the filter needs more input"
            return SystemError(readCall, ENOBUFS, detail: detail)
        }
        if writer.isQueued && filter.weightOfOwnOutput(after: bytesSent) > limit {
            let detail = "the peer does not read the output of the filter, which needs more input"
            return SystemError(writeCall, ENOBUFS, detail: detail)
        }
        return nil
    }
}
