import CLinux
import Glibc

@testable import Reactor

/// Runs a program on a table of system calls, and describes the result of each call in the same words in every world:
/// sockets by the numbers of their calls, addresses by their sockets.
final class SocketWorld {
    private let calls: Syscalls
    private let epoll: CInt
    private var files: [Int: CInt] = [:]
    private var kinds: [Int: SocketProgram.Kind] = [:]
    /// The clients of bursts.
    private var extra: [CInt] = []
    private var closed: Set<Int> = []
    private var bound: Set<Int> = []
    private var unixNames: [Int: SocketAddress] = [:]
    private let prefix: String
    private let settle: () -> Void
    /// The answer to a bind(2) for which a socket that is not of the program has the port.
    static let portOfOthers = "EADDRINUSE for others"

    /// - Parameter settle: called after each call, for a kernel that needs time.
    init(_ calls: Syscalls, prefix: String, settle: @escaping () -> Void) {
        self.calls = calls
        self.prefix = prefix
        self.settle = settle
        epoll = CInt(calls.epollCreate())
    }

    deinit {
        for (number, fd) in files where !closed.contains(number) { _ = calls.close(fd) }
        for fd in extra { _ = calls.close(fd) }
        _ = calls.close(epoll)
    }

    func run(_ program: SocketProgram) -> [String] {
        program.calls.enumerated().map { index, call in
            defer { settle() }
            return run(call, index)
        }
    }

    private func run(_ call: SocketProgram.Call, _ index: Int) -> String {
        func on(_ number: Int, _ body: (CInt) -> Int) -> String {
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            return text(body(fd))
        }
        switch call {
        case .socket(let kind):
            let family: CInt = kind == .unix ? AF_UNIX : kind == .tcp6 ? AF_INET6 : AF_INET
            let type = kind == .udp4 ? clinux_SOCK_DGRAM : clinux_SOCK_STREAM
            let fd = calls.socket(family, CInt(type | clinux_SOCK_NONBLOCK | clinux_SOCK_CLOEXEC))
            // As the library does: small writes do not wait for acknowledgements.
            if kind == .tcp4 || kind == .tcp6 {
                withUnsafeBytes(of: CInt(1)) {
                    _ = calls.setSocketOption(CInt(fd), CInt(IPPROTO_TCP), TCP_NODELAY, $0.baseAddress!, 4)
                }
            }
            return open(fd, kind, index)
        case .pair:
            var ends: [CInt] = [-1, -1]
            let result = calls.socketPair(&ends)
            if result >= 0 {
                (files[index], files[index + 1]) = (ends[0], ends[1])
                (kinds[index], kinds[index + 1]) = (.unix, .unix)
            }
            return text(result)
        case .bind(let number, let target):
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            let address =
                if case .socket(let other)? = target { self.address(of: other) ?? freeAddress(number) } else {
                    freeAddress(number)
                }
            let result = address.withSocketAddress { calls.bind(fd, $0, $1) }
            if result >= 0 {
                bound.insert(number)
                if address.isUnix { unixNames[number] = address }
            }
            // TIME_WAIT, or another program: a difference that the documentation names.
            let isOfOthers = result == -Int(EADDRINUSE) && !address.isUnix && !isHeld(address.port, except: number)
            return isOfOthers ? Self.portOfOthers : text(result)
        case .listen(let number, let backlog): return on(number) { calls.listen($0, CInt(backlog)) }
        case .connect(let number, let target):
            return on(number) { fd in
                let address = self.address(of: target, for: number)
                // A TCP socket that connects to itself: a documented difference. Every address here is a loopback, or means it.
                if kinds[number] != .unix, kinds[number] != .udp4, self.address(of: number)?.port == address.port {
                    return 0
                }
                return address.withSocketAddress { calls.startConnect(fd, $0, $1) }
            }
        case .accept(let number):
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            var peer = sockaddr_storage()
            let result = calls.accept(fd, &peer)
            let text = open(result, kinds[number]!, index)
            return result < 0 ? text : "\(text) from \(name(SocketAddress(peer), except: index))"
        case .send(let number, let count):
            return on(number) { fd in
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: count)
                return bytes.withUnsafeBytes {
                    calls.send(fd, $0.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!, count)
                }
            }
        case .sendPieces(let number, let sending, let sizes):
            return on(number) { fd in send(sizes, with: sending, fd, index) }
        case .burst(let number, let count):
            guard let kind = kinds[number], kind != .udp4 else { return "no stream" }
            return (0..<count).map { _ in
                let type = clinux_SOCK_STREAM | clinux_SOCK_NONBLOCK | clinux_SOCK_CLOEXEC
                let family: CInt = kind == .unix ? AF_UNIX : kind == .tcp6 ? AF_INET6 : AF_INET
                let client = CInt(calls.socket(family, CInt(type)))
                extra.append(client)
                let target = address(of: .socket(number), for: number)
                let result = target.withSocketAddress { calls.startConnect(client, $0, $1) }
                return "\(text(result)) \(calls.poll(client, 0x4))"
            }.joined(separator: ", ")
        case .read(let number, let count):
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            return withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { buffer in
                let result = calls.read(fd, buffer.baseAddress!, count)
                return "\(text(result)) sum \(result > 0 ? buffer[..<result].reduce(0) { $0 &* 31 &+ Int($1) } : 0)"
            }
        case .setOption(let number, let level, let name):
            return on(number) { fd in
                withUnsafeBytes(of: CInt(1)) { calls.setSocketOption(fd, level, name, $0.baseAddress!, 4) }
            }
        case .getOption(let number, let level, let name):
            return on(number) { fd in
                var value: CInt = 0
                return min(calls.getSocketOption(fd, level, name, &value), 0)
            }
        case .sendTo(let number, let target, let count):
            guard kinds[number] == .udp4 else { return "not UDP" }
            return on(number) { fd in
                [UInt8](repeating: 7, count: count).withUnsafeBytes {
                    DatagramBatch.send($0, to: address(of: target, for: number), fd, CountingSyscalls(calls))
                }
            }
        case .receive(let number, let count):
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            return withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { buffer in
                let result = calls.receive(fd, buffer.baseAddress!, count)
                let sum = result > 0 ? buffer[..<result].reduce(0) { $0 &* 31 &+ Int($1) } : 0
                return "\(text(result)) sum \(sum)"
            }
        case .receiveMessage(let number, let size):
            guard kinds[number] == .udp4 else { return "not UDP" }
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            let batch = DatagramBatch(packetSize: size)
            let result = batch.receive(fd, upTo: 2, CountingSyscalls(calls))
            guard result > 0 else { return text(result) }
            return (0..<result).map {
                "\(batch.bytes($0).count) bytes of \(name(batch.address($0), except: -1))\(batch.isTruncated($0) ? ", cut" : "")"
            }.joined(separator: "; ")
        case .shutdown(let number, let how):
            // A TCP socket that is neither connected nor listening: a documented difference.
            return on(number) {
                kinds[number] == .unix || kinds[number] == .udp4 || isInUse($0) ? calls.shutdown($0, how) : 0
            }
        case .close(let number):
            return on(number) { fd in
                closed.insert(number)
                return calls.close(fd)
            }
        case .error(let number):
            return on(number) { fd in
                var value: CInt = 0
                let result = calls.getSocketOption(fd, SOL_SOCKET, SO_ERROR, &value)
                return result < 0 ? result : Int(value)
            }
        case .isListening(let number):
            return on(number) { fd in
                var value: CInt = 0
                let result = calls.getSocketOption(fd, SOL_SOCKET, SO_ACCEPTCONN, &value)
                return result < 0 ? result : Int(value)
            }
        case .resetOnClose(let number):
            return on(number) { fd in
                withUnsafeBytes(of: linger(l_onoff: 1, l_linger: 0)) {
                    calls.setSocketOption(fd, SOL_SOCKET, SO_LINGER, $0.baseAddress!, socklen_t($0.count))
                }
            }
        case .reuseAddress(let number):
            return on(number) { fd in
                withUnsafeBytes(of: CInt(1)) { calls.setSocketOption(fd, SOL_SOCKET, SO_REUSEADDR, $0.baseAddress!, 4) }
            }
        case .names(let number):
            guard let fd = files[number], !closed.contains(number) else { return "no file" }
            var (local, peer) = (sockaddr_storage(), sockaddr_storage())
            let first = calls.getSocketName(fd, &local)
            let second = calls.getPeerName(fd, &peer)
            let own = SocketAddress(local)
            // The kernel reports in several ways which address an ended connection keeps.
            if second < 0 && kinds[number] != .unix { return own?.port == 0 ? "no port" : "a port" }
            let side =
                own.map { $0.isUnix ? "\(unixNames.values.contains($0))" : $0.port == 0 ? "no port" : $0.hostText }
                ?? "none"
            return
                "\(text(first)) \(side), \(text(second)) \(second < 0 ? "" : name(SocketAddress(peer), except: number))"
        case .waiting(let number):
            if kinds[number] == .udp4 { return "UDP" }
            return on(number) { calls.waitingBytes($0, .incoming) }
        case .poll(let number, let events): return on(number) { calls.poll($0, events) }
        case .watch(let number, let mask): return on(number) { control(EPOLL_CTL_ADD, $0, mask, number) }
        case .change(let number, let mask): return on(number) { control(EPOLL_CTL_MOD, $0, mask, number) }
        case .forget(let number): return on(number) { control(EPOLL_CTL_DEL, $0, 0, number) }
        case .wait(0): return ""
        case .wait(let count):
            var events = [epoll_event](repeating: epoll_event(), count: count)
            let result = calls.epollWait(epoll, &events, CInt(count), 0)
            return text(result)
                + events.prefix(max(result, 0)).map { " \($0.data.u64):\(String($0.events, radix: 16))" }.joined()
        }
    }

    private func send(_ sizes: [Int], with sending: SocketProgram.Sending, _ fd: CInt, _ index: Int) -> Int {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: max(sizes.reduce(0, +), 1))
        return bytes.withUnsafeBytes { bytes in
            if sending == .write { return calls.write(fd, bytes.baseAddress!, sizes[0]) }
            var start = UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
            let pieces = sizes.map { size in
                defer { start += size }
                return iovec(iov_base: start, iov_len: size)
            }
            return pieces.withUnsafeBufferPointer {
                // An empty array may have no address.
                let first = $0.baseAddress ?? UnsafePointer(bitPattern: 8)!
                return sending == .writeVector
                    ? calls.writeVector(fd, first, $0.count) : calls.sendVector(fd, first, $0.count)
            }
        }
    }

    private func control(_ operation: CInt, _ fd: CInt, _ mask: UInt32, _ number: Int) -> Int {
        calls.epollControl(epoll, operation, fd, clinux_epoll_event(mask, UInt64(number)))
    }

    private func open(_ result: Int, _ kind: SocketProgram.Kind, _ index: Int) -> String {
        if result < 0 { return text(result) }
        (files[index], kinds[index]) = (CInt(result), kind)
        return "a file"
    }

    private func text(_ result: Int) -> String { result < 0 ? SystemError(.poll, CInt(-result)).name : "\(result)" }

    /// Whether another socket of the program, of the same protocol, has the port, and not only had it.
    private func isHeld(_ port: UInt16, except number: Int) -> Bool {
        files.contains { other, fd in
            other != number && (kinds[other] == .udp4) == (kinds[number] == .udp4) && address(of: other)?.port == port
                && (bound.contains(other) || kinds[other] == .udp4 || isInUse(fd))
        }
    }

    private func isInUse(_ fd: CInt) -> Bool {
        var (name, listens) = (sockaddr_storage(), CInt(0))
        return calls.getPeerName(fd, &name) >= 0
            || (calls.getSocketOption(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens) >= 0 && listens != 0)
    }

    // MARK: Addresses

    private func freeAddress(_ number: Int) -> SocketAddress {
        switch kinds[number] {
        case .unix?: try! SocketAddress(abstract: "\(prefix)-\(number)")
        case .tcp6?: SocketAddress(host: "::1", port: 0)!
        default: SocketAddress.loopback(port: 0)
        }
    }

    private func address(of number: Int) -> SocketAddress? {
        if let name = unixNames[number] { return name }
        guard let fd = files[number], !closed.contains(number) else { return nil }
        var storage = sockaddr_storage()
        guard calls.getSocketName(fd, &storage) >= 0, let address = SocketAddress(storage), address.port != 0 else {
            return nil
        }
        return address
    }

    private func address(of target: SocketProgram.Target, for number: Int) -> SocketAddress {
        if case .socket(let other) = target, let address = address(of: other), kinds[other] == kinds[number] {
            return address
        }
        switch kinds[number] {
        case .unix?: return try! SocketAddress(abstract: "\(prefix)-nobody")
        // Port 1 of the loopback, without a listener.
        case .tcp6?: return SocketAddress(host: "::1", port: 1)!
        default: return SocketAddress.loopback(port: 1)
        }
    }

    /// The first socket that has this address.
    private func name(_ address: SocketAddress?, except number: Int) -> String {
        guard let address else { return "nobody" }
        let owner = files.keys.sorted().first { $0 != number && self.address(of: $0) == address }
        return owner.map { "#\($0)" } ?? "one that is gone"
    }
}

extension SystemError {
    /// `ECONNRESET`
    fileprivate var name: String {
        let text = description
        guard let open = text.lastIndex(of: "("), let close = text.lastIndex(of: ")") else { return text }
        return String(text[text.index(after: open)..<close])
    }
}
