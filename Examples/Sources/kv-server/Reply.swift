/// An answer, and how it is written in RESP2.
enum Reply {
    case simple(StaticString)
    case error(CommandError)
    case integer(Int)
    /// A string of any bytes; `nil` is "no such key".
    case bulk([UInt8]?)
    case array([Reply])
    /// Replies that follow one another, each to a part of one request.
    case sequence([Reply])

    static var ok: Reply { .simple("OK") }

    static func bulk(_ text: String) -> Reply { .bulk(Array(text.utf8)) }

    /// The reply as it is sent.
    var bytes: [UInt8] {
        var output: [UInt8] = []
        append(to: &output)
        return output
    }

    /// Appends the reply as it is sent.
    func append(to output: inout [UInt8]) {
        switch self {
        case .simple(let text): text.withUTF8Buffer { output.append(line: "+", $0) }
        case .error(let error): output.append(line: "-", error.text.utf8.map { $0 < 0x20 ? UInt8(ascii: " ") : $0 })
        case .integer(let number): output.append(line: ":", number)
        case .bulk(nil): output.append(line: "$", -1)
        case .bulk(let bytes?):
            output.reserveCapacity(output.count + bytes.count + 16)
            output.append(line: "$", bytes.count)
            output.append(contentsOf: bytes)
            output.append(contentsOf: Self.lineEnd)
        case .array(let replies):
            output.append(line: "*", replies.count)
            for reply in replies { reply.append(to: &output) }
        case .sequence(let replies):
            for reply in replies { reply.append(to: &output) }
        }
    }

    fileprivate static let lineEnd: [UInt8] = [0x0D, 0x0A]
}

extension [UInt8] {
    fileprivate mutating func append(line sign: Unicode.Scalar, _ content: some Collection<UInt8>) {
        append(UInt8(ascii: sign))
        append(contentsOf: content)
        append(0x0D)
        append(0x0A)
    }

    fileprivate mutating func append(line sign: Unicode.Scalar, _ number: Int) {
        append(line: sign, String(number).utf8)
    }
}

/// Why a command was refused, in the words of redis, which clients compare.
struct CommandError: Error {
    let text: String

    static let wrongType = CommandError(text: "WRONGTYPE Operation against a key holding the wrong kind of value")
    static let syntax = CommandError(text: "ERR syntax error")
    static let notInteger = CommandError(text: "ERR value is not an integer or out of range")
    static let overflow = CommandError(text: "ERR increment or decrement would overflow")
    static let noSuchDatabase = CommandError(text: "ERR DB index is out of range")

    static func wrongNumberOfArguments(_ command: String) -> CommandError {
        CommandError(text: "ERR wrong number of arguments for '\(command)' command")
    }

    static func invalidExpireTime(_ command: Command) -> CommandError {
        CommandError(text: "ERR invalid expire time in '\(command.rawValue)' command")
    }

    static func notWhileSubscribed(_ command: Command) -> CommandError {
        CommandError(
            text:
                "ERR Can't execute '\(command.rawValue)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
                + "are allowed in this context")
    }

    /// Names the command and the first arguments, up to 128 bytes of each.
    static func unknownCommand(_ request: Request) -> CommandError {
        func quoted(_ word: [UInt8]) -> String { "'" + String(decoding: word.prefix(128), as: UTF8.self) + "'" }
        var arguments = ""
        for word in request.dropFirst() where arguments.utf8.count < 128 { arguments += quoted(word) + " " }
        return CommandError(
            text: "ERR unknown command \(quoted(request[0])), with args beginning with: \(arguments)")
    }
}
