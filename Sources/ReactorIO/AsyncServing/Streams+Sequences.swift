import Promises
import Reactor
import ReactorLibc

extension Connection {
    /// The input as it arrives, in chunks of at most 64 KiB, until the peer ends its side. Each step is a `receive()`,
    /// with the same errors, so the two may alternate.
    public var chunks: LoopSequence<[UInt8]> { LoopSequence(ChunkSource(self)) }

    /// The lines of the input, without `\n` or `\r\n`, until the peer's end or a drain; see `inputEnd`. A line may have
    /// at most 65,536 bytes; for another limit use `frames(LineDecoder(limit:))`. Throws the errors of `readLine`.
    public var lines: LoopSequence<String> { LoopSequence(FrameSource(self, LineDecoder(), "connection.lines")) }

    /// The frames that `decoder` finds in the input, until the peer's end or a drain; see `inputEnd`.
    ///
    /// ```swift
    /// for try await line in child.output.frames(LineDecoder(lastLine: .accept)) { log(line) }
    /// ```
    ///
    /// Throws the errors of `readFrame`. The iterators share the decoder, which keeps its state between frames.
    public func frames<Decoder: FrameDecoder>(_ decoder: Decoder) -> LoopSequence<Decoder.Frame> {
        LoopSequence(FrameSource(self, decoder, "connection.frames"))
    }
}

extension Listener {
    /// The clients of the listener, until it is closed.
    ///
    /// A client is accepted when the consumer asks for the next one. Others wait in the backlog. The consumer must
    /// close each connection. Throws the errors of `accept`.
    public var connections: LoopSequence<Connection> { LoopSequence(ConnectionSource(self)) }
}

private final class ChunkSource: LoopSource {
    private let connection: Connection
    let name: StaticString = "connection.chunks"
    var loop: EventLoop { connection.loop }

    init(_ connection: Connection) { self.connection = connection }

    func next(isolation _: isolated (any Actor)?) async throws -> [UInt8]? {
        if connection.reader.isLastCall { try await connection.endOfChunks().value }
        let bytes = try await connection.receive().value
        return bytes.isEmpty ? nil : bytes
    }
}

private final class FrameSource<Decoder: FrameDecoder>: LoopSource {
    fileprivate let connection: Connection
    fileprivate var decoder: Decoder
    let name: StaticString
    var loop: EventLoop { connection.loop }
    /// The same as `FrameLoop.number`.
    private var number = Int32(-1)

    init(_ connection: Connection, _ decoder: Decoder, _ name: StaticString) {
        self.connection = connection
        self.decoder = decoder
        self.name = name
    }

    // On another thread, the loop has ended, and the connection with it.
    deinit { if connection.loop.isUsableHere { connection.cold?.frameClock?.endMessages() } }

    func next(isolation _: isolated (any Actor)?) async throws -> Decoder.Frame? {
        if number < 0 { number = connection.numberOfNextLoop() }
        while case .wait(let answers) = boundary() { try await Promise<Void>(answers).value }
        if case .end = boundary() { return nil }
        if let refusal = connection.beginFrame() { throw refusal }
        return try await Promise<Decoder.Frame?>(InputLoop.read(SequenceRead(of: self))).value
    }
}

extension FrameSource {
    fileprivate func boundary(unbuffered: Int = 0, isInsideFrame: Bool = false) -> FrameBoundary {
        guard connection.isDraining else { return .goOn }
        return connection.boundary(of: number, unbuffered: unbuffered, isInsideFrame: isInsideFrame)
    }
}

private struct SequenceRead<Decoder: FrameDecoder>: InputConsumer {
    private let source: FrameSource<Decoder>
    /// The position in the input where the frame began. Skipped bytes after this position may be part of the frame.
    private let begin: Int
    // A copy, so that an unfinished read discards its decoder's state: other reads may take the bytes that it has
    // decoded.
    private var read: FrameRead<Decoder>

    init(of source: FrameSource<Decoder>) {
        self.source = source
        begin = source.connection.position(unbuffered: 0)
        read = FrameRead(source.connection, source.decoder)
    }

    static var form: InputForm { .frames }
    static var valueAtEnd: Decoder.Frame?? { .some(.none) }
    var connection: UnownedReference<Connection> { read.connection }
    var heldBytes: Int { read.heldBytes }
    var expectation: StreamError.Expectation { read.expectation }

    mutating func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Decoder.Frame?> {
        let isInsideFrame = source.connection.position(unbuffered: received.count) != begin
        switch source.boundary(unbuffered: received.count, isInsideFrame: isInsideFrame) {
        case .goOn: break
        case .end:
            source.connection.keepInput(received)
            return .done(nil)
        // Cannot happen in the first call, because `next` has waited before it.
        case .wait(let answers):
            source.connection.keepInput(received)
            return .wait(answers)
        }
        let step = try read.take(received)
        if case .done = step { source.decoder = read.decoder }
        return step
    }
}

private final class ConnectionSource: LoopSource {
    private let listener: Listener
    let name: StaticString = "listener.connections"
    var loop: EventLoop { listener.loop }

    init(_ listener: Listener) { self.listener = listener }

    func next(isolation _: isolated (any Actor)?) async throws -> Connection? {
        if listener.state.isClosed { return nil }
        do { return try await listener.accept().value } catch {
            if listener.state.isClosed, (error as? SystemError)?.code == ECANCELED { return nil }
            throw error
        }
    }
}
