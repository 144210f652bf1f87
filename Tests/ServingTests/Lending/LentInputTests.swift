@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Lent bytes stay valid, whatever a decoder or a body does with the connection before it reads them.
///
/// Only in release builds can the optimizer remove the reference that keeps them, and no sanitizer watches there: freed
/// memory is reused at once.
struct LentInputTests {
    enum Deed: CaseIterable {
        case abort, close, receive

        func callAsFunction(_ connection: Connection) {
            switch self {
            case .abort: connection.abort()
            case .close: connection.close()
            // Drops the array with the last reference to the promise.
            case .receive: connection.receive().ignoringErrors()
            }
        }
    }

    enum Lender: CaseIterable { case readFrame, decoder, body, lastFrame }

    /// Makes a frame of all bytes after `look` has seen them.
    private struct WholeDecoder: FrameDecoder {
        let isLast: Bool
        let look: (RawSpan) -> Void

        func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
            if isLast { return .incomplete(missing: 1) }
            look(bytes)
            return .frame((), consumed: bytes.byteCount)
        }

        func decodeLast(_ bytes: RawSpan) throws -> Void? { look(bytes) }
    }

    @Test(arguments: Lender.allCases, Deed.allCases) func theyStayValid(lender: Lender, deed: Deed) throws {
        // Bytes buffered before, by a read of the first byte, take another path.
        for isBuffered in [true, false] {
            try withConnections { net, a, b in
                let sent = pattern(200)
                var seen: [UInt8]?
                func look(_ bytes: RawSpan) {
                    deed(a)
                    let taken = Self.takeFreedMemory()
                    seen = bytes.withUnsafeBytes { [UInt8]($0) }
                    withExtendedLifetime(taken) {}
                }
                if isBuffered {
                    try hang(b.write([0] + sent), timeout: patience)
                    expectEqual(try hang(a.read(exactly: 1), timeout: patience), [0])
                }
                switch lender {
                case .readFrame: a.readFrame(WholeDecoder(isLast: false, look: look)).ignoringErrors()
                case .decoder:
                    a.forEachFrame(WholeDecoder(isLast: false, look: look)) { _, _ in Promise.value }.ignoringErrors()
                case .body:
                    a.forEachFrame(WholeDecoder(isLast: false) { _ in }) { _, reader -> Promise<Void> in
                        look(reader.rest())
                        return .value
                    }.ignoringErrors()
                case .lastFrame: a.readFrame(WholeDecoder(isLast: true, look: look)).ignoringErrors()
                }
                if !isBuffered { b.write(sent).ignoringErrors() }
                if lender == .lastFrame { b.shutdownWrite().ignoringErrors() }
                try net.loop.run(until: { seen != nil })
                expectEqual(seen, sent)
                a.abort()
                b.abort()
                try net.loop.run()
            }
        }
    }

    /// Arrays of all sizes in which `sent` may have been kept, twice each: malloc returns the last freed block first.
    private static func takeFreedMemory() -> [[UInt8]] {
        (0..<128).map { [UInt8](repeating: 0xEE, count: 16 + $0 / 2 * 16) }
    }
}
