/// Ends a `forEachFrame`, `forEachLine` or `forEachChunk` before the peer ends. The body throws it, or its promise is
/// rejected with it. The promise of the `forEach…` is then fulfilled.
///
/// ```swift
/// connection.forEachLine { line -> Promise<Void> in
///     if line == "QUIT" { throw StopReading() }
///     return connection.write(answer(to: line))
/// }
/// ```
///
/// To write first, throw it after the write: `connection.write("bye\n").done { throw StopReading() }`. The next read
/// receives later frames, so another protocol can continue there:
///
/// ```swift
/// connection.forEachLine { line in if line.isEmpty { throw StopReading() } }
///     .then { connection.forEachFrame(LengthPrefixDecoder<UInt32>()) { message, _ in handle(message) } }
/// ```
///
/// The promise is also fulfilled at the peer's end and by a drain: `Connection.inputEnd` tells whether more may come.
/// Elsewhere this is an ordinary error.
public struct StopReading: Error, Hashable, Sendable {
    /// Makes the error.
    public init() {}
}

extension StopReading: CustomStringConvertible {
    /// A sentence for people.
    public var description: String { "StopReading outside of forEachFrame, forEachLine and forEachChunk" }
}
