import Glibc
import Reactor

// Streams and listeners for `for await`.

extension Connection {
    /// What comes, as it comes, at most 64 KiB at a time, until the peer ends. Fails with the `SystemError` that `read`
    /// would report. Each step is a `read()`, so the two may be mixed, one after the other.
    public var chunks: LoopSequence<[UInt8]> {
        LoopSequence("connection.chunks", on: loop) { [self] in
            switch try await read().asPromise().value {
            case .bytes(let bytes): bytes
            case .end: nil
            case .failed(let error): throw error
            }
        }
    }

    /// The lines, without their `\n` or `\r\n`, until the peer ends, each of 65,536 bytes at most. Fails as `readLine`.
    public var lines: LoopSequence<String> { lines(limit: 65536) }

    /// The same with another limit, in bytes.
    public func lines(limit: Int) -> LoopSequence<String> {
        LoopSequence("connection.lines", on: loop) { [self] in try await readLine(limit: limit).value }
    }
}

extension Listener {
    /// Clients, each accepted when it is asked for, until the listener is closed; those who are not asked for wait in the
    /// backlog. Fails as `accept`. Whoever takes a connection closes it.
    public var connections: LoopSequence<Connection> {
        LoopSequence("listener.connections", on: loop) { [self] in
            if isClosed { return nil }
            do { return try await accept().value } catch {
                // Closed meanwhile, by its owner.
                if isClosed, (error as? SystemError)?.code == ECANCELED { return nil }
                throw error
            }
        }
    }
}
