import Promises

/// A request: the name of a command and its arguments. Never empty.
typealias Request = [[UInt8]]

/// The client does not speak the protocol. It is told the reason, and its connection is closed.
struct ProtocolError: Error { let reason: String }

/// Reads the requests of one connection: arrays of bulk strings, and inline commands.
final class RequestReader {
    private let connection: Connection
    private let limits: Limits
    /// The words of the current request that have arrived.
    private var words: Request = []
    /// Bytes that the rest of the current request may have.
    private var bytesLeft = 0

    init(_ connection: Connection, _ limits: Limits) {
        self.connection = connection
        self.limits = limits
    }

    /// The next request that is not empty; `nil` if the client has ended its side. Rejected with a `ProtocolError`, or with
    /// the error of the connection.
    func next() -> Promise<Request?> {
        connection.readLine(limit: limits.line).then { [self] line -> Promise<Request?> in
            guard let line else { return .value(nil) }
            guard line.utf8.first == UInt8(ascii: "*") else {
                let words = inlineWords(line)
                return words.isEmpty ? next() : .value(words)
            }
            guard let count = parseInteger(line.utf8.dropFirst()), count <= limits.words else {
                throw ProtocolError(reason: "invalid multibulk length")
            }
            if count <= 0 { return next() }
            bytesLeft = limits.request
            // Between two of its words nothing shows that there is an answer to come.
            let request = connection.deferDrain(until: readWords(count))
            return request.isPending ? request.timeout(limits.partialRequest) : request
        }
    }

    /// Reads bulk strings until there are `count` words.
    private func readWords(_ count: Int) -> Promise<Request?> {
        readWord().then { [self] word -> Promise<Request?> in
            words.append(word)
            return words.count < count ? readWords(count) : .value(takeWords())
        }
    }

    private func takeWords() -> Request {
        var request: Request = []
        swap(&request, &words)
        return request
    }

    private func readWord() -> Promise<[UInt8]> {
        connection.readLine(limit: limits.header).then { [self] line in
            let length = try parseLength(line)
            bytesLeft -= length
            return connection.read(exactly: length + 2).map { Array($0.dropLast(2)) }
        }
    }

    private func parseLength(_ line: String?) throws(ProtocolError) -> Int {
        guard let line else { return 0 }
        guard let sign = line.unicodeScalars.first, sign == "$" else {
            throw ProtocolError(reason: "expected '$', got '\(line.unicodeScalars.first ?? " ")'")
        }
        guard let length = parseInteger(line.utf8.dropFirst()), 0...bytesLeft ~= length else {
            throw ProtocolError(reason: "invalid bulk length")
        }
        return length
    }

    /// What a client types: words with blanks between them. There are no quotes.
    private func inlineWords(_ line: String) -> Request {
        line.utf8.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map(Array.init)
    }
}

/// The integer that `digits` are; `nil` if they are none in the form in which the protocol writes integers.
func parseInteger(_ digits: some Collection<UInt8>) -> Int? {
    let isNegative = digits.first == UInt8(ascii: "-")
    let digits = isNegative ? digits.dropFirst() : digits[...]
    guard let first = digits.first, first != UInt8(ascii: "0") || (digits.count == 1 && !isNegative) else { return nil }
    var value = 0
    for digit in digits {
        guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
        let (product, overflow) = value.multipliedReportingOverflow(by: 10)
        let figure = Int(digit - UInt8(ascii: "0"))
        let (sum, carry) =
            isNegative ? product.subtractingReportingOverflow(figure) : product.addingReportingOverflow(figure)
        if overflow || carry { return nil }
        value = sum
    }
    return value
}
