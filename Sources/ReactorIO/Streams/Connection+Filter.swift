import Promises
import Reactor

extension Connection {
    /// Puts `filter` between the descriptor and this connection's users. The promise is fulfilled with this connection
    /// after the filter's handshake, or at once without one.
    ///
    /// ```swift
    /// connect(to: address).then { $0.filter(TLSClient(name: "example.org")) }.then { connection in
    ///     connection.write(request)
    /// }
    ///
    /// listener.serve(onError: { error, connection in log("\(connection): \(error)") }) { connection in
    ///     connection.filter(TLSServer(certificate)).then { connection in converse(connection) }
    /// }
    /// ```
    ///
    /// Everything works as without a filter, with these differences:
    /// - until the filter is ready, reads, writes and `shutdownWrite` are refused with `EBUSY`, and the connection is
    ///   not idle for `Listener.drain`;
    /// - `shutdownWrite` and `close` send the filter's end record after the queued writes. `abort`, and releasing the
    ///   last reference, do not;
    /// - cancelling a write that waits for the kernel has no effect, because its bytes are part of the stream;
    /// - writes are not gathered: each is fulfilled when the kernel has taken the filter's output for it;
    /// - the connection also reads when the filter needs input, within limits: see `ConnectionFilter`;
    /// - `bytesReceived` and `bytesSent` count bytes at the descriptor. `queuedBytes`, the watermarks and
    ///   `writeQueueLimit` count the filter's output;
    /// - `peerGone` reports the end of the descriptor's stream, or an end record that a read has seen. It reads nothing
    ///   itself;
    /// - `detach` is refused.
    ///
    /// The filter's first input is the unconsumed bytes. Earlier queued writes are sent unfiltered. A connection has
    /// one filter at a time. For two layers at once, one filter calls the other. For two layers in sequence, the first
    /// filter removes itself with `FilterOutput.removeFilter`.
    ///
    /// The promise is rejected with
    /// - the error that the filter throws, or `ConnectionFilterError.truncated` if the peer ends its side during the
    ///   handshake;
    /// - `PromiseError.timedOut` after `timeout`;
    /// - a `SystemError`: `EBUSY` if the connection has a filter, or if a read is pending; `ENOBUFS` beyond the limits
    ///   of `ConnectionFilter`; `EBADF` if the connection is closed or has one direction only; `EPIPE` if one of its
    ///   directions has ended; `ECANCELED` if it is closed during the handshake; the error of a failed connection.
    ///
    /// An error, a time-out or a cancellation during the handshake fails the connection: close it.
    /// - Parameter timeout: the limit for the handshake; `nil` for none. A delay of the event loop extends it like
    ///   `idleTimeout`.
    public func filter(
        _ filter: some ConnectionFilter, timeout: Duration? = .seconds(10), file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Connection> {
        let ready = InstalledFilter.install(filter, on: self, timeout)
        return Promise(ready.core.traced(root: "filter", Promise<Connection>.self, file, line))
    }

    /// The installed filter, for its state, such as the certificate of a TLS peer; `nil` once the connection is closed
    /// or the filter removed, and while one of its methods runs. A struct is copied.
    public var installedFilter: (any ConnectionFilter)? {
        loop.assertOwner()
        guard let filter = cold?.filter, !filter.isRemoved, !filter.isCalling else { return nil }
        return filter.filter
    }
}
