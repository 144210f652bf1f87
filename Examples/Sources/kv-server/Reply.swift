import Promises
import ReactorIO

/// The protocol version of the answers to a client, set by `HELLO`.
enum ProtocolVersion: Int { case resp2 = 2, resp3 }

/// An answer, and its encoding.
enum Reply {
    case simple(StaticString)
    case error(CommandError)
    case integer(Int)
    /// A string of any bytes; `nil` means "no such key".
    case bulk(SharedBytes?)
    case array([Reply])
    /// Keys and values in turn: a map in RESP3, an array in RESP2.
    case map([Reply])
    /// A message that is no answer, or not the only one: its own type in RESP3, an array in RESP2.
    case push([Reply])
    /// Consecutive replies, each to a part of one request.
    case sequence([Reply])

    static var ok: Reply { .simple("OK") }

    static func bulk(_ text: String) -> Reply { .bulk(Array(text.utf8)) }
    static func bulk(_ bytes: [UInt8]) -> Reply { .bulk(SharedBytes(bytes)) }

    /// Appends the encoded reply.
    func append(to output: inout ByteWriter, _ version: ProtocolVersion) {
        switch self {
        case .simple(let text): text.withUTF8Buffer { output.append(line: "+", $0) }
        case .error(let error): output.append(line: "-", error.text.utf8.map { $0 < 0x20 ? UInt8(ascii: " ") : $0 })
        case .integer(let number): output.append(line: ":", number)
        case .bulk(nil): output.append(version == .resp3 ? "_\r\n" : "$-1\r\n")
        case .bulk(let bytes?):
            output.append(line: "$", bytes.count)
            output.append(bytes)
            output.append(lineEnd)
        case .array(let replies): append(replies, "*", replies.count, to: &output, version)
        case .map(let replies) where version == .resp2: append(replies, "*", replies.count, to: &output, version)
        case .map(let replies): append(replies, "%", replies.count / 2, to: &output, version)
        case .push(let replies): append(replies, version == .resp3 ? ">" : "*", replies.count, to: &output, version)
        case .sequence(let replies): for reply in replies { reply.append(to: &output, version) }
        }
    }

    private func append(
        _ replies: [Reply], _ sign: Unicode.Scalar, _ count: Int, to output: inout ByteWriter,
        _ version: ProtocolVersion
    ) {
        output.append(line: sign, count)
        for reply in replies { reply.append(to: &output, version) }
    }
}

extension ByteWriter {
    fileprivate mutating func append(line sign: Unicode.Scalar, _ content: some Collection<UInt8>) {
        append(UInt8(ascii: sign))
        append(content)
        append(lineEnd)
    }

    fileprivate mutating func append(line sign: Unicode.Scalar, _ number: Int) {
        append(UInt8(ascii: sign))
        append(decimal: number)
        append(lineEnd)
    }
}

private let lineEnd: UInt16 = 0x0D0A

/// The reason for refusing a command, in the words of redis, which clients compare.
struct CommandError: Error {
    let text: String

    static let wrongType = CommandError(text: "WRONGTYPE Operation against a key holding the wrong kind of value")
    static let syntax = CommandError(text: "ERR syntax error")
    static let notInteger = CommandError(text: "ERR value is not an integer or out of range")
    static let unsupportedVersion = CommandError(text: "NOPROTO unsupported protocol version")
    static let overflow = CommandError(text: "ERR increment or decrement would overflow")
    static let noSuchDatabase = CommandError(text: "ERR DB index is out of range")

    static func wrongNumberOfArguments(_ command: String) -> CommandError {
        CommandError(text: "ERR wrong number of arguments for '\(command)' command")
    }

    static func invalidExpireTime(_ command: Command) -> CommandError {
        CommandError(text: "ERR invalid expire time in '\(command.name)' command")
    }

    static func notWhileSubscribed(_ command: Command) -> CommandError {
        CommandError(
            text:
                "ERR Can't execute '\(command.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
                + "are allowed in this context")
    }

    /// Names the command and the first arguments, up to 128 bytes of each.
    static func unknownCommand(_ name: [UInt8], _ words: [[UInt8]]) -> CommandError {
        func quoted(_ word: some Collection<UInt8>) -> String { "'\(excerpt(word))'" }
        var arguments = ""
        for word in words where arguments.utf8.count < 128 { arguments += quoted(word) + " " }
        return CommandError(
            text: "ERR unknown command \(quoted(name)), with args beginning with: \(arguments)")
    }
}
