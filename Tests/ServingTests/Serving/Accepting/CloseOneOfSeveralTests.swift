@testable import PromisesTestSupport

/// Clients that wait to be accepted when one of several listeners at an address is closed, or one of several loops that
/// share a listener ends.
struct CloseOneOfSeveralTests {
    /// Two listeners at one address, and clients that have connected to it. The kernel has chosen a listener for each
    /// by its port.
    private func two(_ count: Int = 64) throws -> ([Listener], [Peer]) {
        let options: [SocketSetting] = [.set(.reusePort, to: true)]
        let first = try Listener.bind("127.0.0.1:0", options: options)
        let second = try Listener.bind([first.localAddress], options: options)
        expectEqual(second.localAddress, first.localAddress)
        return ([first, second], try (0..<count).map { _ in try Peer(to: first.localAddress) })
    }

    /// True if the kernel migrates clients to another listener, see ip-sysctl: then nothing is lost, and there is
    /// nothing to test.
    private static var migrates: Bool {
        let fd = open("/proc/sys/net/ipv4/tcp_migrate_req", O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return false }
        defer { close(fd) }
        var digit: UInt8 = 0
        return read(fd, &digit, 1) == 1 && digit != UInt8(ascii: "0")
    }

    private func isReset(_ client: Peer) throws -> Bool {
        do {
            try client.send("x")
            let byte = elsewhere { try client.receive(exactly: 1) }
            return try hang(byte, timeout: patience) != Array("x".utf8)
        } catch let error as SystemError {
            guard [ECONNRESET, EPIPE].contains(error.code) else { throw error }
            return true
        }
    }

    @Test(.inRealTime, .enabled(if: !migrates)) func itsQueueIsReset() throws {
        let (listeners, clients) = try two()
        let served = listeners[1].serve { echo($0) }
        listeners[0].close()
        let reset = try clients.filter { try isReset($0) }.count
        // All of them at one listener is as likely as 63 heads in a row.
        expect(reset > 0 && reset < clients.count)
        for client in clients { client.close() }
        listeners[1].close()
        try hang(served, timeout: patience)
    }

    @Test(.inRealTime) func acceptingThemFirstSavesThoseThatAreThere() throws {
        let (listeners, clients) = try two()
        let served = listeners.map { $0.serve { echo($0) } }
        listeners[0].close(drain: true)
        for client in clients { expectEqual(try isReset(client), false) }
        for client in clients { client.close() }
        listeners[1].close()
        try hang(when(fulfilled: served), timeout: patience)
    }

    @Test(.group(2)) func aLoopThatEndsLosesNoneOfAListenerThatHandsOver() throws {
        let clients = try (0..<64).map { _ in try Peer(to: listener.localAddress) }
        loops[0].stop()
        loops[0].join()
        let served = listener.serve(on: loops) { echo($0) }
        for client in clients { expectEqual(try isReset(client), false) }
        try listener.end(served, closing: clients)
    }
}
