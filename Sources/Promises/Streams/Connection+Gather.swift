import Glibc
import Reactor

// Answers to requests that came together leave together. While a connection has input that was received and not consumed,
// what is written is gathered, and promised as written. It leaves with one call: with the answer to the last of the
// requests, when a read has to wait for the kernel, at the end of the turn, or when the block is full.

extension Connection {
    /// The size of a block: what one call sends at most. More would only be more to keep if the peer does not read.
    private static var gatherLimit: Int { 65_536 }
    /// Larger writes are not copied: what is gathered goes before them. Copying 16 KiB takes half as long as a call.
    private static var largestGathered: Int { 16_384 }

    /// Whether the answer to another request is likely to follow before this turn ends. Outside of a turn nothing would
    /// send what is gathered.
    private var expectsAnswers: Bool { hasInput && !reader.isWaiting && loop.isInsideHandler }

    /// Gathers `bytes`, or sends them behind what is gathered. To be called only while nothing is queued.
    /// - Returns: the number of bytes that are gathered or that the kernel has taken; below zero, the connection has failed.
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
        let cold = makeColdState
        if !writer.isGathering {
            writer.gather()
            // The answers to the requests that are here are about as long together.
            cold.gathered.reserveCapacity(1024)
            flushAtEndOfTurn()
        }
        cold.gathered.append(contentsOf: bytes)
        return bytes.count
    }

    /// Sends what is gathered, if anything is. What the kernel does not take is queued, without a promise.
    @inline(__always)
    func sendGathered() {
        if writer.isGathering { _ = sendGathered(with: UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Sends what is gathered, and `last` behind it.
    /// - Returns: how many bytes of `last` the kernel has taken; below zero, the connection has failed.
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
            fail(SystemError(writeCall, CInt(-result)))
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
        }
        return max(sent - before, 0)
    }
}
