import Glibc
import Reactor

// Answers to requests that have arrived together are sent together. While a connection has buffered input, the bytes of
// its writes are gathered in a block, and the writes are fulfilled. One call sends the block: with the answer to the
// last of the requests, when a read has to wait for the kernel, at the end of the turn, or when the block is full.

extension Connection {
    /// Sends the gathered bytes, if there are any. Bytes that the kernel does not take are queued without a promise.
    @inline(__always)
    func sendGathered() {
        if writer.isGathering { _ = sendGathered(with: UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Sends the gathered bytes and then `last`.
    /// - Returns: the number of bytes of `last` that the kernel has taken; below zero if the connection has failed.
    @inline(never)
    func sendGathered(with last: UnsafeRawBufferPointer) -> Int {
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
