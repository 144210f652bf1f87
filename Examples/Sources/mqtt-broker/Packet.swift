import Promises
import ReactorIO

/// A published message.
struct Message: Sendable {
    /// UTF-8; see `Filter`.
    var topic: [UInt8]
    var payload: [UInt8]
    /// 0, or 1 if acknowledged.
    var quality: UInt8
    var isRetained: Bool
}

/// The packets that clients send in MQTT 3.1.1.
enum Packet {
    case connect(name: [UInt8], keepAlive: Int, will: Message?)
    case publish(Message, number: UInt16?)
    case subscribe(number: UInt16, [(filter: Filter, quality: UInt8)])
    case unsubscribe(number: UInt16, [Filter])
    case acknowledgement, ping, disconnect
}

/// The client violates the protocol, or exceeds a limit. Its connection is closed.
struct ProtocolError: Error {}

/// The reason in a CONNACK that refuses a client.
enum Refusal: UInt8, Error {
    case version = 1, name = 2
}

/// Decodes packets: a byte for the kind and flags, the length, and a body, which has its own lengths.
struct PacketDecoder: FrameDecoder {
    /// Bytes of a packet.
    let limit: Int

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Packet> {
        try .reading(bytes) { reader in
            let first = try reader.byte()
            let length = try reader.varint(limit: 4)
            if length > limit { throw ByteError.limitExceeded(limit: limit) }
            // A body that is too short is an error, not a packet to wait for, so it has its own reader.
            var body = ByteReader(try reader.bytes(Int(length)))
            let packet = try packet(first, &body)
            if !body.isAtEnd { throw ProtocolError() }
            return packet
        }
    }

    private func packet(_ first: UInt8, _ body: inout ByteReader) throws -> Packet {
        switch (first >> 4, first & 0xF) {
        case (1, 0): return try connect(&body)
        case (3, let flags):
            let (isAgain, quality, topic) = (flags & 8 > 0, flags >> 1 & 3, try readTopic(&body))
            if quality > 1 || isAgain && quality == 0 { throw ProtocolError() }
            let number = quality > 0 ? try readNumber(&body) : nil
            let payload = [UInt8](body.rest())
            return .publish(
                Message(topic: topic, payload: payload, quality: quality, isRetained: flags & 1 > 0), number: number)
        case (4, 0):
            _ = try readNumber(&body)
            return .acknowledgement
        case (8, 2):
            let number = try readNumber(&body)
            return .subscribe(number: number, try list(&body) { (try Filter(readText(&$0)), try readQuality(&$0)) })
        case (10, 2): return .unsubscribe(number: try readNumber(&body), try list(&body) { try Filter(readText(&$0)) })
        case (12, 0): return .ping
        case (14, 0): return .disconnect
        default: throw ProtocolError()
        }
    }

    /// The elements up to the end, at least one.
    private func list<Element>(
        _ body: inout ByteReader, _ element: (inout ByteReader) throws -> Element
    ) throws -> [Element] {
        var list: [Element] = []
        repeat { list.append(try element(&body)) } while !body.isAtEnd
        return list
    }

    private func connect(_ body: inout ByteReader) throws -> Packet {
        let (protocolName, version) = (try readText(&body), try body.byte())
        // "MQIsdp" is version 3.
        guard ["MQTT", "MQIsdp"].contains(where: { protocolName.elementsEqual($0.utf8) }) else { throw ProtocolError() }
        if version != 4 { throw Refusal.version }
        let flags = try body.byte()
        let (hasName, hasPassword, hasWill) = (flags & 128 > 0, flags & 64 > 0, flags & 4 > 0)
        let (isClean, willQuality) = (flags & 2 > 0, flags >> 3 & 3)
        let isValid = flags & 1 == 0 && (hasWill || flags & 0x38 == 0) && willQuality < 3 && (hasName || !hasPassword)
        if !isValid { throw ProtocolError() }
        let (keepAlive, name) = (Int(try body.integer(as: UInt16.self)), try readText(&body))
        if name.isEmpty && !isClean { throw Refusal.name }
        var will: Message?
        if hasWill {
            let topic = try readTopic(&body)
            let payload = [UInt8](try body.bytes(prefixedBy: UInt16.self, limit: 65535))
            will = Message(topic: topic, payload: payload, quality: min(willQuality, 1), isRetained: flags & 32 > 0)
        }
        // Skipped: they are not checked here.
        if hasName { _ = try readText(&body) }
        if hasPassword { _ = try body.bytes(prefixedBy: UInt16.self, limit: 65535) }
        return .connect(name: name, keepAlive: keepAlive, will: will)
    }
}

// Functions, since Swift 6.2 takes no further methods of a `ByteReader`.

/// UTF-8 without a zero (1.5.3).
private func readText(_ body: inout ByteReader) throws -> [UInt8] {
    let text = try String(utf8: body.bytes(prefixedBy: UInt16.self, limit: 65535)).utf8
    if text.contains(0) { throw ProtocolError() }
    return Array(text)
}

private func readTopic(_ body: inout ByteReader) throws -> [UInt8] {
    let text = try readText(&body)
    if text.isEmpty || text.contains(where: Filter.isWildcard) { throw ProtocolError() }
    return text
}

/// The packet identifier, which is not zero (2.3.1).
private func readNumber(_ body: inout ByteReader) throws -> UInt16 {
    let number: UInt16 = try body.integer()
    if number == 0 { throw ProtocolError() }
    return number
}

/// The quality of a subscription. The broker grants at most 1.
private func readQuality(_ body: inout ByteReader) throws -> UInt8 {
    let quality = try body.byte()
    if quality > 2 { throw ProtocolError() }
    return min(quality, 1)
}

extension Packet {
    /// A packet for a client, with the body that `body` writes.
    static func bytes(_ first: UInt8, _ body: (inout ByteWriter) -> Void) -> [UInt8] {
        var (packet, content) = (ByteWriter(), ByteWriter())
        body(&content)
        packet.append(first)
        packet.append(varint: UInt64(content.bytes.count))
        packet.append(content.bytes)
        return packet.bytes
    }
}

extension Message {
    /// The message for a subscriber; with the number for its acknowledgement, or without.
    func bytes(number: UInt16?) -> [UInt8] {
        Packet.bytes(0x30 | (number == nil ? 0 : 2) | (isRetained ? 1 : 0)) { body in
            body.append(UInt16(topic.count))
            body.append(topic)
            if let number { body.append(number) }
            body.append(payload)
        }
    }
}
