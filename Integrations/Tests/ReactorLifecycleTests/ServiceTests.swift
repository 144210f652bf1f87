import Glibc
import Logging
import Promises
import Reactor
import ReactorIO
import ReactorLifecycle
import ServiceLifecycle
import Synchronization
import Testing

/// Servers and groups of loops as services.
@Suite struct ServiceTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// The server's address, once it listens.
    final class Announcement: Sendable {
        private let stream = AsyncStream<SocketAddress>.makeStream()

        func announce(_ address: SocketAddress) { stream.continuation.yield(address) }

        var address: SocketAddress {
            get async throws {
                for await address in stream.stream { return address }
                throw CancellationError()
            }
        }
    }

    /// A server that echoes lines, on its own loop or on a given one.
    private func echo(
        _ announcement: Announcement, on loop: LoopRemote? = nil, drainTimeout: Duration = .seconds(60)
    ) -> ServerService {
        ServerService(name: "echo", on: loop, drainTimeout: drainTimeout) {
            let listener = try Listener.bind("127.0.0.1:0")
            announcement.announce(listener.localAddress)
            return (listener, listener.serve { $0.forEachLineAnswering() })
        }
    }

    @Test func aGracefulShutdownIsADrain() async throws {
        let announcement = Announcement()
        let group = ServiceGroup(services: [echo(announcement)], logger: logger)
        let running = Task { try await group.run() }
        let address = try await announcement.address
        let client = try EventLoop.spawn(name: "client")
        // The line is answered, and then the idle connection ends in order.
        let answers = Guarantee(on: client) { () -> Promise<[String]> in
            connect(to: address).then { connection in
                connection.write("one\n").then { connection.readLine() }.then { first in
                    Task { await group.triggerGracefulShutdown() }
                    return connection.readLine().map { [first ?? "", $0 ?? "the end"] }
                }.ensure { connection.close() }
            }
        }
        #expect(try await answers.value.value == ["one", "the end"])
        try await running.value
        client.stop()
    }

    @Test func cancellationAbortsWhatADrainWaitsFor() async throws {
        let announcement = Announcement()
        let server = ServerService(name: "stuck", drainTimeout: .seconds(3600)) {
            let listener = try Listener.bind("127.0.0.1:0")
            announcement.announce(listener.localAddress)
            // Never answers.
            return (listener, listener.serve { connection in connection.write("x").then { endless() } })
        }
        let group = ServiceGroup(services: [server], logger: logger)
        let running = Task { try await group.run() }
        let address = try await announcement.address
        let client = try EventLoop.spawn(name: "client")
        let end = Guarantee(on: client) { () -> Promise<Bool> in
            connect(to: address).then { connection in
                connection.receive().then { _ in
                    Task {
                        await group.triggerGracefulShutdown()
                        running.cancel()
                    }
                    return connection.read().map { outcome in outcome != .bytes([]) }
                }.ensure { connection.close() }
            }
        }
        #expect(try await end.value.value)
        _ = await running.result
        client.stop()
    }

    @Test func whatStartThrowsIsTheErrorOfTheService() async throws {
        struct NoAddress: Error {}
        let server = ServerService { throw NoAddress() }
        await #expect(throws: NoAddress.self) { try await server.run() }
        let ended = try EventLoop.spawn(name: "ended")
        ended.stop()
        await joined(ended)
        let announcement = Announcement()
        await #expect(throws: DispatchError.loopEnded) { try await echo(announcement, on: ended).run() }
    }

    @Test func aGroupOfLoopsEndsBehindTheServersThatUseIt() async throws {
        let loops = try LoopGroup(loops: 2, name: "worker")
        let announcement = Announcement()
        let server = ServerService(name: "echo", on: loops[0]) {
            let listener = try Listener.bind("127.0.0.1:0")
            announcement.announce(listener.localAddress)
            return (listener, listener.serve(on: loops) { $0.forEachLineAnswering() })
        }
        let group = ServiceGroup(services: [LoopGroupService(loops), server], logger: logger)
        let running = Task { try await group.run() }
        _ = try await announcement.address
        #expect(loops.allSatisfy { !$0.hasEnded })
        await group.triggerGracefulShutdown()
        try await running.value
        let hasEnded = loops.allSatisfy { $0.hasEnded }
        #expect(hasEnded)
    }

    private func joined(_ remote: LoopRemote) async {
        let promise = Guarantee(on: .shared) { remote.join() }
        await promise.value
    }
}

extension Connection {
    fileprivate func forEachLineAnswering() -> Promise<Void> { forEachLine { line in self.write(line + "\n") } }
}

/// A promise that settles only when cancelled.
private func endless() -> Promise<Void> { after(.seconds(86_400)).asPromise() }
