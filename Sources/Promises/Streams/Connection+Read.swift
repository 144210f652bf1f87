import Glibc
import Reactor

// Reads of the next bytes. Connection+Receive.swift is what the forms of reads have in common.

extension Connection {
    /// Reads the next bytes, the peer's end, or a failure. Waits until the descriptor is readable and then reads once,
    /// at most `limit` bytes and never more than 64 KiB.
    ///
    /// ```swift
    /// connection.read().done { outcome in
    ///     switch outcome {
    ///     case .bytes(let bytes): print("\(bytes.count) bytes")
    ///     case .end: print("the peer has ended")
    ///     case .failed(let error): print(error)
    ///     }
    /// }
    /// ```
    ///
    /// A connection has one read at a time, of any form. Cancelling a read leaves the input to the next one. Fulfilled
    /// with `.failed` and
    /// - the error of recv(2), or of read(2) on a descriptor that is not a socket;
    /// - `EBUSY` if another read is pending;
    /// - `EBADF` after `close` or `abort`, and on a pipe's writer;
    /// - `ECANCELED` if `close` or `abort` is called during the read;
    /// - `EINVAL` if `limit` is below one.
    ///
    /// - Parameter limit: the maximum number of bytes; at least one.
    /// - Returns: a guarantee of the bytes, the end or the failure.
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(readBytes(limit).traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// Reads the next bytes as `read` does.
    ///
    /// ```swift
    /// connection.receive().then { bytes in connection.write(bytes) }
    /// ```
    ///
    /// - Parameter limit: the maximum number of bytes; at least one.
    /// - Returns: a promise of the bytes, which are empty at the peer's end. Rejected with the `SystemError` of
    ///   `ReadOutcome.failed`, and with the error of the filter if that has failed.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> { Promise(readArray(limit).traced(root: "receive", Promise<[UInt8]>.self, file, line)) }

    /// The number of received bytes that no read has consumed: the beginning of an incomplete frame, or complete frames
    /// that have not been read yet.
    package var bufferedByteCount: Int { cold?.input.count ?? 0 }
}
