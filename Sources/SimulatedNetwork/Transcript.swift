import Reactor

/// A packet's kind, for the transcript.
enum Packet {
    case syn, synAck, ack, fin, reset
    case data(ArraySlice<UInt8>)
    case datagram(ArraySlice<UInt8>)
    case portUnreachable

    var size: Int { count + 40 }

    /// The number of bytes that it carries.
    var count: Int {
        switch self {
        case .data(let bytes), .datagram(let bytes): bytes.count
        default: 0
        }
    }

    /// The form that the transcript keeps: only the bytes that it shows, and one more.
    var kept: Packet {
        switch self {
        case .data(let bytes): .data(Array(bytes.prefix(33))[...])
        case .datagram(let bytes): .datagram(Array(bytes.prefix(33))[...])
        default: self
        }
    }

    /// - Parameter count: the number of bytes that it carries.
    func text(_ count: Int) -> String {
        switch self {
        case .syn: "SYN"
        case .synAck: "SYN ACK"
        case .ack: "ACK"
        case .fin: "FIN"
        case .reset: "RST"
        case .portUnreachable: "port unreachable"
        case .data(let bytes): "\(count) bytes \(Self.preview(bytes))"
        case .datagram(let bytes): "datagram, \(count) bytes \(Self.preview(bytes))"
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

/// The packets of a simulation, as a packet trace shows them, and the system calls that were made to fail.
struct Transcript {
    enum Fate {
        case arrived
        case arrives(at: Int64)
        case held
        case lost
    }

    private enum Event {
        case packet(Packet, count: Int, from: SocketAddress, to: SocketAddress, Fate)
        case fault(SystemError, host: String)
    }

    /// The number of events kept.
    private static var capacity: Int { 65_536 }
    private var entries: [(moment: Int64, event: Event)] = []
    private var dropped = 0

    mutating func note(
        _ moment: Int64, _ from: SocketAddress, _ to: SocketAddress, _ packet: Packet, _ fate: Fate
    ) { append(moment, .packet(packet.kept, count: packet.count, from: from, to: to, fate)) }

    /// Records an injected failure of a system call.
    mutating func note(_ moment: Int64, _ call: SystemCall, _ code: CInt, on host: String) {
        append(moment, .fault(SystemError(call, code), host: host))
    }

    private mutating func append(_ moment: Int64, _ event: Event) {
        if entries.count == Self.capacity {
            entries.removeFirst(Self.capacity / 2)
            dropped += Self.capacity / 2
        }
        entries.append((moment, event))
    }

    func text(_ name: (SocketAddress) -> String) -> String {
        let head = dropped > 0 ? "(\(dropped) earlier events)\n" : ""
        return head
            + entries.map { moment, event in
                switch event {
                case .packet(let packet, let count, let from, let to, let fate):
                    "\(Self.seconds(moment)) \(name(from)) > \(name(to)): \(packet.text(count))\(Self.text(fate))\n"
                case .fault(let error, let host): "\(Self.seconds(moment)) \(host): \(error)\n"
                }
            }.joined()
    }

    private static func text(_ fate: Fate) -> String {
        switch fate {
        case .arrived: ""
        case .arrives(let moment): ", arrives \(seconds(moment))"
        case .held: ", held"
        case .lost: ", lost"
        }
    }

    /// `12.345678901`
    private static func seconds(_ moment: Int64) -> String {
        let fraction = String(moment % 1_000_000_000)
        return "\(moment / 1_000_000_000).\(String(repeating: "0", count: 9 - fraction.count))\(fraction)"
    }
}
