@testable import PromisesTestSupport

/// A client of a soak without promises: a bare socket, moved a step at a time by timers of the loop.
final class SoakPeer {
    /// Its behaviour. The first three complete their conversation.
    enum Manner: CaseIterable {
        case polite, byteByByte, stalling
        /// Resets at some moment, or just closes.
        case resetting, vanishing
        /// Sends and never reads; connects and sends nothing.
        case deaf, silent
    }

    private(set) var isOver = false
    /// True if all of its text came back.
    private(set) var isAnswered = false
    private(set) var received = 0
    let manner: Manner
    private let text: SoakText
    private let faults: SoakFaults
    private let complain: (String) -> Void
    private var dice: SplitMix64
    private var fd: CInt = -1
    private var conversation = SoakConversation.nameless
    private var isConnected = false
    private var sent = 0
    private var hasEnded = false
    private var isStalled = false
    /// The step at which a misbehaving one leaves.
    private var patience: Int
    private let pause: Int

    init(
        _ manner: Manner, _ text: SoakText, pause: Int, _ faults: SoakFaults, _ dice: inout SplitMix64,
        complain: @escaping (String) -> Void
    ) {
        self.manner = manner
        self.text = text
        self.pause = pause
        self.faults = faults
        self.complain = complain
        self.dice = SplitMix64(dice.next())
        patience = dice.below(dice.pick([2, 10, 40]))
    }

    /// Runs until it is done.
    func start(to address: SocketAddress, from source: SocketAddress?, on loop: EventLoop) {
        loop.schedule(after: .microseconds(dice.below(pause * 20))) { [self] in
            open(address, source)
            connect(to: address)
            goOn(address, loop)
        }
    }

    private func goOn(_ address: SocketAddress, _ loop: EventLoop) {
        if isOver { return }
        loop.schedule(after: .microseconds(dice.below(isStalled ? pause * 50 : pause))) { [self] in
            if isConnected { step() } else { connect(to: address) }
            goOn(address, loop)
        }
    }

    private func open(_ address: SocketAddress, _ source: SocketAddress?) {
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        fd = socket(address.family, CInt(type), 0)
        if let source, source.withSocketAddress({ bind(fd, $0, $1) }) < 0 { complain("\(SystemError(.bind, errno))") }
    }

    private func connect(to address: SocketAddress) {
        let result = address.withSocketAddress { Glibc.connect(fd, $0, $1) }
        // The backlog of a Unix listener is full; TCP would retry by itself.
        if result < 0 && errno == EAGAIN { return }
        if result < 0 && errno != EINPROGRESS { return fail("connect", errno) }
        isConnected = true
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutableBytes(of: &storage) {
            _ = getsockname(fd, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
        }
        conversation = SoakConversation(client: SocketAddress(storage))
        if ![.polite, .byteByByte, .stalling].contains(manner) { faults.harm(conversation) }
    }

    private func step() {
        switch manner {
        case .silent:
            patience -= 1
            if patience < 0 { return finish() }
            return read()
        case .deaf:
            patience -= 1
            if patience < 0 { return finish() }
            return write(1 << 20)
        case .resetting where patience == 0:
            var value = linger(l_onoff: 1, l_linger: 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
            return finish()
        case .vanishing where patience == 0: return finish()
        case .byteByByte: write(1)
        default: write(1 + dice.below(dice.pick([10, 1000, 100_000])))
        }
        patience -= 1
        isStalled = manner == .stalling && dice.once(in: 8)
        if !isOver { read() }
    }

    private func write(_ most: Int) {
        let part = text.part(sent, most)
        if part.isEmpty {
            if !hasEnded && manner != .deaf { shutdown(fd, CInt(SHUT_WR)) }
            hasEnded = true
            return
        }
        let count = part.withUnsafeBytes { send(fd, $0.baseAddress!, $0.count, CInt(MSG_NOSIGNAL)) }
        if count < 0 { return errno == EAGAIN ? () : fail("send", errno) }
        sent += count
    }

    private func read() {
        withUnsafeTemporaryAllocation(byteCount: 1 + dice.below(dice.pick([10, 3000, 65536])), alignment: 1) { buffer in
            let count = recv(fd, buffer.baseAddress!, buffer.count, 0)
            if count < 0 { return errno == EAGAIN ? () : fail("recv", errno) }
            if count == 0 { return end() }
            if !text.holds(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: received) {
                complain("\(manner) was answered with other bytes at \(received)")
            }
            received += count
            if received > sent { complain("\(manner) was answered before it spoke") }
        }
    }

    private func end() {
        isAnswered = received == text.count
        if !isAnswered && !faults.isHarmed(conversation) {
            complain("\(manner) got \(received) of \(text.count) bytes and the end")
        }
        finish()
    }

    private func fail(_ call: String, _ code: CInt) {
        if !faults.isHarmed(conversation) {
            complain("\(manner): \(SystemError(.socket, code)) of \(call) after \(received) bytes")
        }
        finish()
    }

    private func finish() {
        isOver = true
        close(fd)
    }
}
