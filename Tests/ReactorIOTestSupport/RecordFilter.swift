import PromisesTestSupport

/// A cipher for tests, with the features that filters may have: a handshake, records with a length, an end record, an
/// alert, pings that are answered, and writes that must wait for input.
///
/// A record is a type byte, four bytes of length, and the payload. The payload of data is combined with its sender's
/// key and its offset in the stream, so that lost, doubled or reordered bytes are noticed.
final class RecordFilter: ConnectionFilter {
    enum Record: UInt8 {
        case hello = 1
        case data, end, alert
        /// Asks for a `pong`.
        case ping, pong
        /// The receiver may not write until `release`.
        case hold, release
    }

    enum Flaw: Error, Equatable {
        case unknownRecord(UInt8)
        case alert
        case injected(Step)
    }

    enum Step: CaseIterable { case begin, receive, write, end, receiveEnd }

    /// Called at the beginning of each method, with the method's output.
    var onStep: (Step, inout FilterOutput) throws -> Void = { _, _ in }

    private let key: UInt8
    private var peerKey: UInt8?
    private var received: [UInt8] = []
    private var sentCount = 0
    private var receivedCount = 0
    private var isHolding = false
    private(set) var pongs = 0

    init(key: UInt8 = 0x5A) { self.key = key }

    static func record(_ type: Record, _ payload: [UInt8] = []) -> [UInt8] {
        let count = UInt32(payload.count)
        return [type.rawValue] + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) } + payload
    }

    static func pings(_ count: Int) -> [UInt8] {
        [[UInt8]](repeating: record(.ping), count: count).flatMap(\.self)
    }

    /// The record that a peer with `key` sends for `payload` after `offset` bytes.
    static func data(_ payload: [UInt8], key: UInt8 = 0x5A, at offset: Int = 0) -> [UInt8] {
        record(.data, payload.withUnsafeBytes { combined($0, key, offset) })
    }

    private static func combined(_ bytes: UnsafeRawBufferPointer, _ key: UInt8, _ offset: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, filled in
            var index = 0
            while index < bytes.count {
                buffer[index] = bytes[index] ^ key ^ UInt8(truncatingIfNeeded: offset &+ index)
                index += 1
            }
            filled = bytes.count
        }
    }

    func begin(_ output: inout FilterOutput) throws {
        try onStep(.begin, &output)
        output.send(Self.record(.hello, [key]))
    }

    func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
        try onStep(.receive, &output)
        bytes.withUnsafeBytes { received += $0 }
        var start = 0
        defer { received.removeFirst(start) }
        while received.count - start >= 5 {
            let count = received[start + 1..<start + 5].reduce(0) { $0 << 8 | Int($1) }
            guard let type = Record(rawValue: received[start]) else {
                output.send(Self.record(.alert))
                throw Flaw.unknownRecord(received[start])
            }
            guard received.count - start >= 5 + count else { return }
            try handle(type, start + 5, count, &output)
            start += 5 + count
            // Bytes after the end record are no record of this stream.
            if type == .end { start = received.count }
        }
    }

    private func handle(_ type: Record, _ start: Int, _ count: Int, _ output: inout FilterOutput) throws {
        switch type {
        case .hello:
            peerKey = received[start]
            output.becomeReady()
        case .data:
            received.withUnsafeBytes {
                let payload = UnsafeRawBufferPointer(rebasing: $0[start..<start + count])
                output.deliver(Self.combined(payload, peerKey ?? 0, receivedCount))
            }
            receivedCount += count
        case .end: output.endInput()
        case .alert: throw Flaw.alert
        case .ping: output.send(Self.record(.pong))
        case .pong: pongs += 1
        case .hold: isHolding = true
        case .release: isHolding = false
        }
    }

    func write(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
        try onStep(.write, &output)
        if isHolding { return output.waitForInput() }
        output.send(Self.record(.data, bytes.withUnsafeBytes { Self.combined($0, key, sentCount) }))
        sentCount += bytes.byteCount
    }

    func end(_ output: inout FilterOutput) throws {
        try onStep(.end, &output)
        output.send(Self.record(.end))
    }

    func receiveEnd(_ output: inout FilterOutput) throws {
        try onStep(.receiveEnd, &output)
        throw ConnectionFilterError.truncated
    }

    var isInsideRecord: Bool { !received.isEmpty }
}

/// Passes all bytes on as they are, and counts those received.
struct PlainFilter: ConnectionFilter {
    private(set) var received = 0

    mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) {
        received += bytes.byteCount
        output.deliver(bytes)
    }

    func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
}

/// Makes the filter of a connection hold its writes until the peer sends `release`.
func holdWrites(of one: Connection = connection, by other: Peer = peer) throws {
    try other.send(RecordFilter.data([1]) + RecordFilter.record(.hold))
    expectEqual(try hang(one.receive(), timeout: patience), [1])
}

extension Network {
    /// From now on each recv(2) returns at most `size` bytes.
    func limitReceives(to size: Int) {
        let receive = kernel.receive
        kernel.receive = { receive($0, $1, min($2, size)) }
    }

    /// A connection with a ready `RecordFilter`, and its peer, after both hellos.
    func filteredPair(
        receiveBuffer: CInt? = nil, _ filter: RecordFilter = RecordFilter()
    ) throws -> (Connection, Peer) {
        let (connection, peer) = try pair(receiveBuffer: receiveBuffer)
        let ready = connection.filter(filter)
        try peer.send(RecordFilter.record(.hello, [0x5A]))
        _ = try hang(ready, timeout: patience)
        expectEqual(try peer.receive(exactly: 6), RecordFilter.record(.hello, [0x5A]))
        return (connection, peer)
    }

    /// Both ends of a TCP connection, with ready filters.
    func filteredEnds(
        _ one: RecordFilter = RecordFilter(key: 0x11), _ other: RecordFilter = RecordFilter(key: 0xE7)
    ) throws -> (client: Connection, server: Connection) {
        let listener = try listen()
        let client = try hang(connect(to: listener.localAddress), timeout: patience)
        let server = try accept(from: listener)
        listener.close()
        let ready = [client.filter(one), server.filter(other)]
        _ = try hang(when(fulfilled: ready), timeout: patience)
        return (client, server)
    }
}
