import Glibc
import Reactor

// Answers to requests that have arrived together are sent together. While a connection has buffered input, the bytes of
// its writes are gathered in a block, and the writes are fulfilled. One call sends the block: with the answer to the
// last of the requests, when a read has to wait for the kernel, at the end of the turn, or when the block is full.

extension Connection {
    /// Whether the answer to another request is likely to follow before this turn ends. Outside of a turn no flush job
    /// would send the gathered bytes.
    private var expectsAnswers: Bool { hasInput && !reader.isWaiting && loop.isBeingDriven }

    /// Gathers `bytes`, or sends them after the gathered bytes. The queue must be empty.
    /// - Returns: the number of bytes that were gathered or that the kernel has taken; below zero if the connection has
    ///   failed.
    @inline(never)
    func gatherOrSend(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !writer.canGather(bytes.count) {
            sendGathered()
            if failure != nil { return -1 }
            if writer.isQueued { return 0 }
        }
        if expectsAnswers && writer.canGather(bytes.count) {
            if writer.gather(bytes) { enqueueFlushJob() }
            return bytes.count
        }
        return writer.isGathering ? sendGathered(with: bytes) : sendOrCork(bytes)
    }

    /// Sends the gathered bytes, if there are any. Bytes that the kernel does not take are queued without a promise.
    @inline(__always)
    func sendGathered() {
        if writer.isGathering { _ = sendGathered(with: UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Sends the gathered bytes and then `last`.
    /// - Returns: the number of bytes of `last` that the kernel has taken; below zero if the connection has failed.
    @inline(never)
    private func sendGathered(with last: UnsafeRawBufferPointer) -> Int {
        var block = writer.takeGathered()
        let before = block.count
        block.append(contentsOf: last)
        let sent = block.withUnsafeBytes { transmit($0, in: turn) }
        if sent < 0 { return -1 }
        if sent < before {
            block.removeLast(last.count)
            enqueue { $0.append(block, from: sent, nil) }
            // The kernel may have refused the registration, which ends the writer.
            if failure != nil { return -1 }
        }
        return max(sent - before, 0)
    }
}
