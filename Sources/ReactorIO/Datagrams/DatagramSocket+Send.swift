import Promises
import Reactor
import ReactorLibc

extension DatagramSocket {
    /// A send that waits for the kernel, or consecutive posts.
    struct Outgoing {
        /// `nil` for posts.
        let promise: PromiseCore?
        var packets: [Datagram]
        /// True for a send of several datagrams, whose value is the number sent.
        let isCounted: Bool
        var sent = 0
        /// The error of the next post, which will be tried once more.
        var refusal: SystemError?
    }

    /// The maximum number of sends, and separately of posts, that wait for the kernel. A further send is rejected with
    /// `ENOBUFS`.
    static var queueLimit: Int { 1024 }

    /// Sends `bytes`, which may be empty, as one datagram to `address`, or to the peer of a connected socket.
    ///
    /// ```swift
    /// socket.send("ping".utf8).then { socket.receive().timeout(.seconds(1)) }
    /// ```
    ///
    /// The promise is fulfilled when the kernel has accepted the datagram, which may still get lost. Sends keep the
    /// order of the calls. The socket outlives errors. The promise is rejected with a `SystemError` from sendmmsg(2):
    /// - `EMSGSIZE` if the datagram is too long;
    /// - `ECONNREFUSED` because of an earlier datagram;
    /// - `EACCES` for a broadcast without its socket option;
    /// - `EDESTADDRREQ` without an address;
    /// - `ENOBUFS` if 1024 sends already wait;
    /// - `EBADF` after `close`;
    /// - `ECANCELED` if the socket is closed while the send waits.
    public func send<Bytes: Collection>(
        _ bytes: Bytes, to address: SocketAddress? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Bytes.Element == UInt8 {
        let array = bytes as? [UInt8] ?? Array(bytes)
        let promise = array.withUnsafeBytes { sendOne($0, address) }
        return Promise(promise.core.traced(root: "send", Promise<Void>.self, file, line))
    }

    /// Sends borrowed bytes, copying them if the kernel does not accept them at once; see the overload that takes a
    /// collection.
    public func send(
        _ span: RawSpan, to address: SocketAddress? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let promise = span.withUnsafeBytes { sendOne($0, address) }
        return Promise(promise.core.traced(root: "send", Promise<Void>.self, file, line))
    }

    /// Sends several datagrams, 32 per system call, waiting while the kernel accepts no more. Once one has been sent,
    /// cancelling has no effect.
    /// - Returns: a promise of the number of datagrams sent, less than the total if the kernel refused the next one. If
    ///   it refused the first one, the promise is rejected as in the overload for one datagram.
    public func send(
        _ packets: [Datagram], file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Int> {
        Promise(sendAll(packets).core.traced(root: "send", Promise<Int>.self, file, line))
    }

    private var refusal: SystemError? {
        if isClosed { return SystemError(.sendMessages, EBADF, detail: "the socket is closed") }
        guard outgoing.count >= Self.queueLimit else { return nil }
        return SystemError(.sendMessages, ENOBUFS, detail: "\(outgoing.count) sends are waiting")
    }

    private func sendOne(_ bytes: UnsafeRawBufferPointer, _ address: SocketAddress?) -> Promise<Void> {
        if let refusal { return Promise(refused: refusal) }
        sendGathered()
        if outgoing.isEmpty {
            let result = DatagramBatch.send(bytes, to: address, socket.fd, loop.kernel)
            if result > 0 {
                successes &+= 1
                return .value
            }
            if result != -Int(EAGAIN) { return Promise(refused: error(result, address)) }
        }
        let core = PromiseCore.pending(Void.self, by: self)
        enqueue(Outgoing(promise: core, packets: [Datagram(bytes, to: address)], isCounted: false))
        return Promise(core)
    }

    private func sendAll(_ packets: [Datagram]) -> Promise<Int> {
        if let refusal { return Promise(refused: refusal) }
        if packets.isEmpty { return .value(0) }
        sendGathered()
        let core = PromiseCore.pending(Int.self, by: self)
        var all = Outgoing(promise: core, packets: packets, isCounted: true)
        if !outgoing.isEmpty || !advance(&all, isReady: false) { enqueue(all) }
        return Promise(core)
    }

    private func enqueue(_ send: Outgoing) {
        outgoing.append(send)
        waitsForRoom = true
        updateInterest()
    }

    private func error(_ result: Int, _ address: SocketAddress?) -> SystemError {
        SystemError(.sendMessages, CInt(-result), detail: (address ?? peerAddress)?.description)
    }

    /// Returns false if the kernel accepts no more for now. That is unexpected if the socket has just been reported as
    /// ready.
    private func advance(_ send: inout Outgoing, isReady: Bool) -> Bool {
        // At most 16 calls, as for streams. Then other work gets its turn.
        for _ in 0..<16 where send.sent < send.packets.count && !isClosed {
            let rest = send.packets[send.sent...]
            let result = DatagramBatch.send(rest.count, socket.fd, loop.kernel) {
                (rest[rest.startIndex + $0].bytes, rest[rest.startIndex + $0].address)
            }
            if result == -Int(EAGAIN) {
                if isReady { noteSpuriousReadiness(.sendMessages, result) }
                return false
            }
            guard result > 0 else {
                guard let promise = send.promise else {
                    pass(&send, error(result, send.packets[send.sent].address))
                    continue
                }
                if send.sent > 0 { return settle(send) }
                promise.reject(error(result, send.packets[0].address))
                return true
            }
            send.sent += result
            successes &+= 1
            if send.promise == nil { waitingPosts -= result }
            if let refusal = send.refusal.take() { noteRefusal(refusal) }
        }
        return send.sent < send.packets.count ? false : settle(send)
    }

    private func settle(_ send: Outgoing) -> Bool {
        if send.isCounted { send.promise?.fulfill(send.sent) } else { send.promise?.fulfill(()) }
        return true
    }

    func flush() {
        defer { waitsForRoom = !outgoing.isEmpty }
        for number in 0..<32 {
            // Removed first, because an inline handler of its promise may close the socket, or send more.
            guard !isClosed, !outgoing.isEmpty else { return }
            var send = outgoing.removeFirst()
            guard advance(&send, isReady: number == 0 && waitsForRoom) else { return outgoing.insert(send, at: 0) }
        }
    }
}
