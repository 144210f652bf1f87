import Glibc
import Reactor

extension Connection {
    /// Whether the kernel may send files itself: not through a filter.
    package var sendsFiles: Bool { canWrite && kind.contains(.socket) }

    /// Sends the beginning of a part of a file with sendfile(2), as much as the kernel takes at once. Pages that are
    /// not in the kernel's memory make the call wait for the disk.
    /// - Returns: the number of bytes. 0 if the file cannot be sent this way, or not now: a filter needs the bytes,
    ///   earlier writes wait, there is no room, the file is shorter, or the call has failed. The caller then writes a
    ///   part of the file, which waits for room, or reports what is wrong.
    package func sendFile(_ file: CInt, _ range: Range<Int>) -> Int {
        loop.assertOwner()
        sendGathered()
        // Bytes that wait for the end of the turn precede the file.
        if writer.uncork() {
            flush()
            updateInterest()
        }
        guard sendsFiles, !writer.isQueued, !range.isEmpty else { return 0 }
        let result = loop.kernel.sendFile(fd, file, range.lowerBound, range.count)
        switch CInt(clamping: -result) {
        // Errors of the file, or of a kernel that cannot do this with it.
        case EINVAL, EIO, ENOSYS, EOPNOTSUPP, EOVERFLOW, ENOMEM, EPERM, ESPIPE: return 0
        default: return max(didTransmit(result, in: turn), 0)
        }
    }
}
