import Glibc
import Reactor

// Answers to requests that have arrived together are sent together. While a connection has buffered input, the bytes of
// its writes are gathered in a block, and the writes are fulfilled. One call sends the block: with the answer to the
// last of the requests, when a read has to wait for the kernel, at the end of the turn, or when the block is full.

extension Connection {
    /// The size of a block, which one call sends. A larger block would only take more memory while the peer does not
    /// read.
    private static var gatherLimit: Int { 65_536 }
    /// Larger writes are sent without a copy, after the gathered bytes. Copying 16 KiB takes half as long as a call.
    private static var largestGathered: Int { 16_384 }

    /// Whether the answer to another request is likely to follow before this turn ends. Outside of a turn no flush job
    /// would send the gathered bytes.
    private var expectsAnswers: Bool { hasInput && !reader.isWaiting && loop.isBeingDriven }

    /// Gathers `bytes`, or sends them after the gathered bytes. The queue must be empty.
    /// - Returns: the number of bytes that were gathered or that the kernel has taken; below zero if the connection has
    ///   failed.
    @inline(never)
    func gatherOrSend(_ bytes: UnsafeRawBufferPointer) -> Int {
        let isLarge = bytes.count > Self.largestGathered
        let gathered = writer.isGathering ? cold?.gathered.count ?? 0 : 0
        if isLarge || gathered + bytes.count > Self.gatherLimit {
            sendGathered()
            if failure != nil { return -1 }
            if writer.isQueued { return 0 }
        }
        if !expectsAnswers || isLarge { return writer.isGathering ? sendGathered(with: bytes) : sendOrCork(bytes) }
        let cold = ensuredColdState
        if !writer.isGathering {
            writer.gather()
            // Answers to pipelined requests take a few hundred bytes, which would otherwise grow the array several
            // times.
            cold.gathered.reserveCapacity(1024)
            enqueueFlushJob()
        }
        cold.gathered.append(contentsOf: bytes)
        return bytes.count
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
        writer.endGathering()
        guard let cold else { return 0 }
        var block: [UInt8] = []
        swap(&block, &cold.gathered)
        let before = block.count
        block.append(contentsOf: last)
        let result = block.withUnsafeBytes { transmit($0.baseAddress!, $0.count) }
        if result < 0 && result != -Int(EAGAIN) {
            fail(SystemError(writeCall, CInt(-result)), losesOutput: true)
            return -1
        }
        let sent = max(result, 0)
        if sent > 0 {
            writer.turnOfLastSend = UInt32(truncatingIfNeeded: loop.turnNumber)
            didSend(sent)
        }
        if sent < before {
            block.removeLast(last.count)
            let queue = WriteQueue()
            queue.append(block, from: sent, nil)
            writer.enqueue(queue)
            updateCongestion()
            updateInterest()
            // The kernel may have refused the registration, which ends the writer.
            if failure != nil { return -1 }
        }
        return max(sent - before, 0)
    }
}
