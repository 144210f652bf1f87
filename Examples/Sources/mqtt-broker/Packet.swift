import Promises

/// A message that is published.
struct Message: Sendable {
    var topic: String
    var payload: [UInt8]
    /// 0, or 1 if it is acknowledged.
    var quality: UInt8
    var isRetained: Bool
}

/// What clients send, of MQTT 3.1.1.
enum Packet {
    case connect(name: String, keepAlive: Int, will: Message?)
    case publish(Message, number: UInt16?)
    case subscribe(number: UInt16, [(filter: Filter, quality: UInt8)])
    case unsubscribe(number: UInt16, [Filter])
    case acknowledgement, ping, disconnect
}

/// The client does not speak the protocol. Its connection is closed.
struct ProtocolError: Error {}

/// Decodes packets: a byte for the kind and its flags, the length, and a body, which has lengths of its own.
struct PacketDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Packet> {
        try .reading(bytes) { reader in
            let first = try reader.byte()
            let length = try reader.varint(limit: 4)
            if length > 1 << 20 { throw ByteError.limitExceeded(limit: 1 << 20) }
            // A body that is too short is an error, and no packet to wait for: it has a reader of its own.
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
            let (quality, topic) = (flags >> 1 & 3, try body.topic())
            if quality > 1 { throw ProtocolError() }
            let number: UInt16? = quality > 0 ? try body.integer() : nil
            let payload = [UInt8](body.rest())
            return .publish(
                Message(topic: topic, payload: payload, quality: quality, isRetained: flags & 1 > 0), number: number)
        case (4, 0):
            try body.skip(2)
            return .acknowledgement
        case (8, 2):
            return .subscribe(
                number: try body.integer(), try list(&body) { (try Filter($0.text()), min(try $0.byte(), 1)) })
        case (10, 2): return .unsubscribe(number: try body.integer(), try list(&body) { try Filter($0.text()) })
        case (12, 0): return .ping
        case (14, 0): return .disconnect
        default: throw ProtocolError()
        }
    }

    /// What `element` reads, until the end; at least one.
    private func list<Element>(
        _ body: inout ByteReader, _ element: (inout ByteReader) throws -> Element
    ) throws -> [Element] {
        var list: [Element] = []
        repeat { list.append(try element(&body)) } while !body.isAtEnd
        return list
    }

    private func connect(_ body: inout ByteReader) throws -> Packet {
        guard try body.text() == "MQTT", try body.byte() == 4 else { throw ProtocolError() }
        let (flags, keepAlive, name) = (try body.byte(), Int(try body.integer(as: UInt16.self)), try body.text())
        var will: Message?
        if flags & 4 > 0 {
            let (topic, payload) = (try body.topic(), [UInt8](try body.bytes(prefixedBy: UInt16.self, limit: 65535)))
            will = Message(topic: topic, payload: payload, quality: min(flags >> 3 & 3, 1), isRetained: flags & 32 > 0)
        }
        // A user name and a password, which nothing checks here.
        for flag: UInt8 in [128, 64] where flags & flag > 0 {
            _ = try body.bytes(prefixedBy: UInt16.self, limit: 65535)
        }
        return .connect(name: name, keepAlive: keepAlive, will: will)
    }
}

extension ByteReader {
    fileprivate mutating func text() throws -> String {
        try String(utf8: bytes(prefixedBy: UInt16.self, limit: 65535))
    }

    fileprivate mutating func topic() throws -> String {
        let text = try text()
        if text.isEmpty || text.contains(where: { $0 == "+" || $0 == "#" }) { throw ProtocolError() }
        return text
    }
}

extension Packet {
    /// A packet for a client, whose body is what `body` writes.
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
    /// The message for a subscriber; with the number that it acknowledges, or without.
    func bytes(number: UInt16?) -> [UInt8] {
        Packet.bytes(0x30 | (number == nil ? 0 : 2) | (isRetained ? 1 : 0)) { body in
            body.append(UInt16(topic.utf8.count))
            body.append(topic)
            if let number { body.append(number) }
            body.append(payload)
        }
    }
}
