import Reactor

/// The part of a packet that the transcript shows.
struct Packet {
    enum Kind: String {
        case syn = "SYN"
        case synAck = "SYN ACK"
        case ack = "ACK"
        case fin = "FIN"
        case reset = "RST"
        case data = ""
        case datagram = "datagram, "
        case portUnreachable = "port unreachable"
    }

    let kind: Kind
    /// The number of bytes, and the first 32.
    private(set) var count = 0
    private var beginning = SIMD32<UInt8>()

    init(_ kind: Kind, _ bytes: ArraySlice<UInt8> = []) {
        self.kind = kind
        count = bytes.count
        withUnsafeMutableBytes(of: &beginning) { $0.copyBytes(from: bytes.prefix(32)) }
    }

    /// The size in bytes with headers.
    var size: Int { count + 40 }

    var text: String {
        guard kind == .data || kind == .datagram else { return kind.rawValue }
        var text = "\(kind.rawValue)\(count) bytes \""
        for index in 0..<min(count, 32) {
            let byte = beginning[index]
            switch byte {
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\r"): text += "\\r"
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += "\\\(Character(UnicodeScalar(byte)))"
            case 0x20..<0x7F: text.unicodeScalars.append(UnicodeScalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text + (count > 32 ? "…\"" : "\"")
    }
}

/// A simulation's packets, as in a packet trace, and the failed system calls.
struct Transcript {
    enum Fate {
        case arrived
        case arrives(at: Int64)
        case held
        case lost
    }

    private enum Event {
        case packet(Packet, from: SocketAddress, to: SocketAddress, Fate)
        case fault(SystemError, host: String)
    }

    /// The maximum number of kept events.
    private static var capacity: Int { 65_536 }
    private var entries: [(moment: Int64, event: Event)] = []
    private var dropped = 0

    mutating func note(_ moment: Int64, _ from: SocketAddress, _ to: SocketAddress, _ packet: Packet, _ fate: Fate) {
        append(moment, .packet(packet, from: from, to: to, fate))
    }

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
                case .packet(let packet, let from, let to, let fate):
                    "\(Self.seconds(moment)) \(name(from)) > \(name(to)): \(packet.text)\(Self.text(fate))\n"
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

    /// Formats a time as `12.345678901`.
    private static func seconds(_ moment: Int64) -> String {
        let fraction = String(moment % 1_000_000_000)
        return "\(moment / 1_000_000_000).\(String(repeating: "0", count: 9 - fraction.count))\(fraction)"
    }
}
