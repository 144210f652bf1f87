import Reactor

/// What a packet is, for the transcript.
enum Packet {
    case syn, synAck, ack, fin, reset
    case data(ArraySlice<UInt8>)
    case datagram(ArraySlice<UInt8>)
    case portUnreachable

    var size: Int {
        switch self {
        case .data(let bytes), .datagram(let bytes): bytes.count + 40
        default: 40
        }
    }

    var text: String {
        switch self {
        case .syn: "SYN"
        case .synAck: "SYN ACK"
        case .ack: "ACK"
        case .fin: "FIN"
        case .reset: "RST"
        case .portUnreachable: "port unreachable"
        case .data(let bytes): "\(bytes.count) bytes \(Self.preview(bytes))"
        case .datagram(let bytes): "datagram, \(bytes.count) bytes \(Self.preview(bytes))"
        }
    }

    private static func preview(_ bytes: ArraySlice<UInt8>) -> String {
        var text = "\""
        for byte in bytes.prefix(32) {
            switch byte {
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\r"): text += "\\r"
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += "\\\(Character(UnicodeScalar(byte)))"
            case 0x20..<0x7F: text.unicodeScalars.append(UnicodeScalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text + (bytes.count > 32 ? "…\"" : "\"")
    }
}

/// The packets of a simulation, as a packet trace shows them: the last ones, and a number of those before.
struct Transcript {
    enum Fate {
        case arrived
        case arrives(at: Int64)
        case held
        case lost
    }

    private struct Entry {
        let moment: Int64
        let from: SocketAddress
        let to: SocketAddress
        let packet: Packet
        let fate: Fate
    }

    /// How many packets are kept.
    private static var capacity: Int { 65_536 }
    private var entries: [Entry] = []
    private var dropped = 0

    mutating func note(
        _ moment: Int64, _ from: SocketAddress, _ to: SocketAddress, _ packet: Packet, _ fate: Fate
    ) {
        if entries.count == Self.capacity {
            entries.removeFirst(Self.capacity / 2)
            dropped += Self.capacity / 2
        }
        // Only what is shown of long payloads.
        let kept: Packet = if case .data(let bytes) = packet, bytes.count > 4096 { .data(bytes) } else { packet }
        entries.append(Entry(moment: moment, from: from, to: to, packet: kept, fate: fate))
    }

    func text(_ name: (SocketAddress) -> String) -> String {
        let head = dropped > 0 ? "(\(dropped) earlier packets)\n" : ""
        return head
            + entries.map { entry in
                let line = "\(Self.seconds(entry.moment)) \(name(entry.from)) > \(name(entry.to)): \(entry.packet.text)"
                return switch entry.fate {
                case .arrived: line + "\n"
                case .arrives(let moment): line + ", arrives \(Self.seconds(moment))\n"
                case .held: line + ", held\n"
                case .lost: line + ", lost\n"
                }
            }.joined()
    }

    /// `12.345678901`
    private static func seconds(_ moment: Int64) -> String {
        let fraction = String(moment % 1_000_000_000)
        return "\(moment / 1_000_000_000).\(String(repeating: "0", count: 9 - fraction.count))\(fraction)"
    }
}
