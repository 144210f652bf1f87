import Glibc
import Reactor

// Streams and listeners for `for await`.

extension Connection {
    /// What comes, as it comes, at most 64 KiB at a time, until the peer ends. Fails with the `SystemError` that `read`
    /// would report. Each step is a `read()`, so the two may be mixed, one after the other.
    public var chunks: LoopSequence<[UInt8]> { LoopSequence(ChunkSource(self)) }

    /// The lines, without their `\n` or `\r\n`, until the peer ends, each of 65,536 bytes at most. Fails as `readLine`.
    public var lines: LoopSequence<String> { lines(limit: 65536) }

    /// The same with another limit, in bytes.
    public func lines(limit: Int) -> LoopSequence<String> { LoopSequence(LineSource(self, limit)) }
}

extension Listener {
    /// Clients, each accepted when it is asked for, until the listener is closed; those who are not asked for wait in the
    /// backlog. Fails as `accept`. Whoever takes a connection closes it.
    public var connections: LoopSequence<Connection> { LoopSequence(ConnectionSource(self)) }
}

private final class ChunkSource: LoopSource<[UInt8]> {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        super.init("connection.chunks", on: connection.loop)
    }

    override func next(isolation _: isolated (any Actor)?) async throws -> [UInt8]? {
        switch try await connection.read().asPromise().value {
        case .bytes(let bytes): return bytes
        case .end: return nil
        case .failed(let error): throw error
        }
    }
}

private final class LineSource: LoopSource<String> {
    private let connection: Connection
    private let limit: Int

    init(_ connection: Connection, _ limit: Int) {
        self.connection = connection
        self.limit = limit
        super.init("connection.lines", on: connection.loop)
    }

    override func next(isolation _: isolated (any Actor)?) async throws -> String? {
        try await connection.readLine(limit: limit).value
    }
}

private final class ConnectionSource: LoopSource<Connection> {
    private let listener: Listener

    init(_ listener: Listener) {
        self.listener = listener
        super.init("listener.connections", on: listener.loop)
    }

    override func next(isolation _: isolated (any Actor)?) async throws -> Connection? {
        if listener.isClosed { return nil }
        do { return try await listener.accept().value } catch {
            // Closed meanwhile, by its owner.
            if listener.isClosed, (error as? SystemError)?.code == ECANCELED { return nil }
            throw error
        }
    }
}
