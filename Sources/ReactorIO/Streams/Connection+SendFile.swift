import Promises
import Reactor
import ReactorLibc

extension Connection {
    /// True when the kernel can send files itself, because no filter needs their bytes.
    package var sendsFiles: Bool { writesDirectly && kind.contains(.socket) }

    /// Writes a head that `sendFile` follows immediately. A small head is gathered, so that both may leave in one
    /// segment.
    package func gather(beforeFile head: (inout ByteWriter) -> Void) -> Promise<Void> {
        guard sendsFiles, !writer.isQueued, loop.isBeingDriven else { return write(head) }
        var output = ByteWriter(ByteWrite.takeSpare(of: self))
        head(&output)
        guard output.shared == nil, writer.canGather(output.written.count) else {
            return ByteWrite.start(&output, on: self)
        }
        if output.written.withUnsafeBytes({ writer.gather($0) }) { FlushJob.enqueue(for: self) }
        ByteWrite.giveBack(&output, to: self)
        return .value
    }

    /// Sends as much of a file's `range` as the kernel takes at once, with sendfile(2). The call waits for the disk if
    /// pages are not in the kernel's page cache.
    /// - Returns: the number of bytes sent. 0 if a filter needs the bytes, earlier writes wait, there is no room, the
    ///   file is shorter, or the call has failed. The caller then writes a part of the file, and that write waits for
    ///   room or reports the error.
    package func sendFile(_ file: CInt, _ range: Range<Int>) -> Int {
        loop.assertOwner()
        if writer.isGathering {
            _ = ByteWrite.sendGathered(with: .init(start: nil, count: 0), on: self, precedesFile: sendsFiles)
        }
        if writer.uncork() {
            flush()
            updateInterest()
        }
        guard sendsFiles, !writer.isQueued, !range.isEmpty else { return 0 }
        let result = loop.kernel.sendFile(fd, file, range.lowerBound, range.count)
        switch CInt(clamping: -result) {
        // Errors from the file, or from a kernel that cannot send it.
        case EINVAL, EIO, ENOSYS, EOPNOTSUPP, EOVERFLOW, ENOMEM, EPERM, ESPIPE: return 0
        default: return max(didTransmit(result, in: turn), 0)
        }
    }
}
