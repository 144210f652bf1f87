import Glibc
import Reactor

extension DatagramSocket {
    /// A send that waits for the kernel.
    struct Outgoing {
        let promise: PromiseCore
        let packets: [Datagram]
        /// Whether it was one of several, which gives their number.
        let isCounted: Bool
        var sent = 0
    }

    /// How many sends may wait for the kernel; one that finds as many waiting is rejected with `ENOBUFS`.
    private static var queueLimit: Int { 1024 }

    /// Sends `bytes`, which may be none, as one datagram to `address`, or to the peer of a connected socket. Fulfilled when the
    /// kernel has taken it; whether it arrives nobody knows. Sends go out in the order of the calls.
    ///
    /// Rejected with a `SystemError` of `sendmmsg`, and the socket goes on: `EMSGSIZE` if it is too long, `ECONNREFUSED` for
    /// an earlier one, `EACCES` for a broadcast without that option, `EDESTADDRREQ` without an address; `ENOBUFS` if 1024 wait
    /// already, `EBADF` after `close`, `ECANCELED` if that came while it waited. See sendmmsg(2).
    public func send<Bytes: Collection>(
        _ bytes: Bytes, to address: SocketAddress? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Bytes.Element == UInt8 {
        let array = bytes as? [UInt8] ?? Array(bytes)
        let promise = array.withUnsafeBytes { sendOne($0, address) }
        return Promise(promise.core.traced(root: "send", Promise<Void>.self, file, line))
    }

    /// Sends bytes that are only lent, such as those of `forEachPacket`; see the form with bytes. What the kernel does not
    /// take at once is copied.
    public func send(
        _ span: RawSpan, to address: SocketAddress? = nil, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let promise = span.withUnsafeBytes { sendOne($0, address) }
        return Promise(promise.core.traced(root: "send", Promise<Void>.self, file, line))
    }

    /// Sends several datagrams, 32 with one system call, and waits while the kernel takes no more.
    ///
    /// Fulfilled with how many have gone: fewer than all if the kernel refused one, which is the next. Rejected as the form
    /// with one if it refused the first.
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
        if let refusal { return Promise(error: refusal) }
        if outgoing.isEmpty {
            let result = DatagramBatch.send(bytes, to: address, socket.fd, loop.kernel)
            if result > 0 { return .value }
            if result != -Int(EAGAIN) { return Promise(error: error(result, address)) }
        }
        let core = IOPromise(Void.self, self)
        enqueue(Outgoing(promise: core, packets: [Datagram(bytes, to: address)], isCounted: false))
        return Promise(core)
    }

    private func sendAll(_ packets: [Datagram]) -> Promise<Int> {
        if let refusal { return Promise(error: refusal) }
        if packets.isEmpty { return .value(0) }
        let core = IOPromise(Int.self, self)
        var all = Outgoing(promise: core, packets: packets, isCounted: true)
        if !outgoing.isEmpty || !advance(&all, isReady: false) { enqueue(all) }
        return Promise(core)
    }

    private func enqueue(_ send: Outgoing) {
        outgoing.append(send)
        updateInterest()
    }

    private func error(_ result: Int, _ address: SocketAddress?) -> SystemError {
        SystemError(.sendMessages, CInt(-result), detail: (address ?? peerAddress)?.description)
    }

    /// Sends what is left of `send`, and settles it. False if the kernel takes no more for now, which is no surprise unless the
    /// socket has just been reported as ready.
    private func advance(_ send: inout Outgoing, isReady: Bool) -> Bool {
        // As with streams, at most 16 calls; then the others have their turn.
        for _ in 0..<16 where send.sent < send.packets.count {
            let rest = send.packets[send.sent...].lazy.map { (bytes: $0.bytes, address: $0.address) }
            let result = DatagramBatch.send(rest, socket.fd, loop.kernel)
            if result == -Int(EAGAIN) {
                if isReady { noteFutileReadiness(.sendMessages, result) }
                return false
            }
            guard result > 0 else {
                if send.sent > 0 { return settle(send) }
                send.promise.reject(error(result, send.packets[0].address))
                return true
            }
            send.sent += result
            successes &+= 1
        }
        return send.sent < send.packets.count ? false : settle(send)
    }

    private func settle(_ send: Outgoing) -> Bool {
        if send.isCounted { send.promise.fulfill(send.sent) } else { send.promise.fulfill(()) }
        return true
    }

    /// Sends what waits: at most 32 sends a turn.
    func flush() {
        for number in 0..<32 {
            // Taken out meanwhile: an inline handler of its promise may close the socket, or send more.
            guard !isClosed, !outgoing.isEmpty else { return }
            var send = outgoing.removeFirst()
            guard advance(&send, isReady: number == 0) else { return outgoing.insert(send, at: 0) }
        }
    }
}
