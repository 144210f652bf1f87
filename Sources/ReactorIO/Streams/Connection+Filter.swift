import Promises
import Reactor

// A filter between a connection's bytes and its users.

extension Connection {
    /// Puts `filter` between the bytes of this connection and its users, and fulfills the promise with this connection
    /// when the filter is ready: after its handshake, or at once if it has none.
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
    /// Everything works as without a filter: reads, frames and chunks of plain bytes, writes, backpressure, half-close,
    /// time-outs, `close`. The differences:
    /// - until the filter is ready, reads, writes and `shutdownWrite` are refused with `EBUSY`; the connection is not
    ///   idle for `Listener.drain`;
    /// - `shutdownWrite` and `close` send the filter's end record after the queued writes. `abort`, and releasing the
    ///   last reference, do not;
    /// - a write that waits for the kernel cannot be withdrawn: its bytes are part of the stream. Cancelling it has no
    ///   effect;
    /// - writes are not gathered: each is fulfilled when the kernel has taken the filter's output for it;
    /// - the connection also reads when the filter needs input, within limits: see `ConnectionFilter`;
    /// - `bytesReceived` and `bytesSent` count the bytes of the descriptor; `queuedBytes`, watermarks and
    ///   `writeQueueLimit` count the filter's output;
    /// - `peerGone` reports the end of the descriptor, or an end record that a read has seen; it reads nothing itself;
    /// - `detach` is refused.
    ///
    /// Received bytes that were not consumed are the first input of the filter. Writes that were queued before leave
    /// unfiltered. A connection has one filter at a time. Two layers at once are one filter that calls the other; two
    /// layers in sequence are two filters, the first of which leaves by `FilterOutput.removeFilter`.
    ///
    /// The promise is rejected with
    /// - the error that the filter throws, or `ConnectionFilterError.truncated` if the peer ends during the handshake;
    /// - `PromiseError.timedOut` after `timeout`;
    /// - a `SystemError`: `EBUSY` if the connection has a filter, or if a read is pending; `ENOBUFS` beyond those
    ///   limits; `EBADF` if it is closed or has one direction only; `EPIPE` if one of its directions has ended;
    ///   `ECANCELED` if it is closed during the handshake; the error of the connection.
    ///
    /// After an error, a time-out or a cancellation during the handshake the connection has failed: close it.
    /// - Parameter timeout: the limit for the handshake; `nil` for none. A delay of the loop counts as for `idleTimeout`.
    /// - Parameter filter: the layer between the connection's bytes and its users.
    /// - Returns: a promise of this connection.
    public func filter(
        _ filter: some ConnectionFilter, timeout: Duration? = .seconds(10), file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Connection> {
        let ready = InstalledFilter.install(filter, on: self, timeout)
        return Promise(ready.core.traced(root: "filter", Promise<Connection>.self, file, line))
    }

    /// The filter of this connection, from the call of `filter` until the connection is closed or the filter is
    /// removed; `nil` without one. For state of a filter other than bytes, such as the certificate of a TLS peer. If it
    /// is a struct, this is a copy, taken between two calls.
    public var installedFilter: (any ConnectionFilter)? {
        loop.assertOwner()
        guard let filter = cold?.filter, !filter.isRemoved, !filter.isCalling else { return nil }
        return filter.filter
    }
}
