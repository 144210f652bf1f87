import Promises
import ReactorIO

/// A message's fields, in order. Comparing names ignores case.
///
/// ```swift
/// var headers: Headers = ["Content-Type": "text/plain"]
/// headers.append("Set-Cookie", "a=1")
/// if let type = headers["content-type"] { print(type) }
/// ```
///
/// Fields are stored as the bytes of their lines. Lookups compare these, and allocate nothing if they return bytes or a
/// `Bool`.
public struct Headers: Sendable, ExpressibleByDictionaryLiteral {
    /// `Name: value CR LF` for each field, from `start` on, all valid. A head's first line may precede them.
    private(set) var lines: [UInt8] = []
    private var start = 0

    /// No fields.
    public init() {}

    /// Several fields; names may repeat.
    public init(dictionaryLiteral fields: (String, String)...) { for (name, value) in fields { append(name, value) } }

    /// True if there are no fields.
    public var isEmpty: Bool { lines.count == start }

    // MARK: Reading

    /// The first value of `name`, if any. Bytes that are not UTF-8 are replaced. Setting it replaces all fields of that
    /// name; `nil` removes them.
    public subscript(name: String) -> String? {
        get { bytes(name).map { String(decoding: $0, as: UTF8.self) } }
        set {
            remove(name)
            if let newValue { append(name, newValue) }
        }
    }

    /// The trimmed bytes of the first value of `name`, if any.
    public func bytes(_ name: String) -> ArraySlice<UInt8>? {
        var found: ArraySlice<UInt8>?
        forEach(named: name) { range in
            found = lines[range]
            return false
        }
        return found
    }

    /// The values of all fields `name`.
    public func all(_ name: String) -> [String] {
        var values: [String] = []
        forEach(named: name) { range in
            values.append(String(decoding: lines[range], as: UTF8.self))
            return true
        }
        return values
    }

    /// True if there is a field `name`.
    public func has(_ name: String) -> Bool { bytes(name) != nil }

    /// True when the comma-separated lists of the fields `name` contain `element`, ignoring case and parameters:
    /// `Connection: upgrade`, `Accept-Encoding: br, gzip;q=0.5`. An element with a weight of 0 (RFC 9110, section
    /// 12.4.2) does not count.
    public func has(_ name: String, listing element: StaticString) -> Bool {
        var isListed = false
        forEach(named: name) { range in
            lines.withUnsafeBytes { bytes in
                bytes.slice(range).forEachElement { if $0.names(element) { isListed = true } }
            }
            return !isListed
        }
        return isListed
    }

    /// Calls `body` with the range of each value of `name` until `body` returns false.
    func forEach(named name: String, _ body: (Range<Int>) -> Bool) {
        var name = name
        name.withUTF8 { name in
            lines.withUnsafeBytes { bytes in
                var start = start
                while let end = bytes.position(of: 0x0A, from: start) {
                    if bytes.line(start, isNamed: name) {
                        let value = bytes.trimmed(start + name.count + 1..<end - 1)
                        if !body(value) { return }
                    }
                    start = end + 1
                }
            }
        }
    }

    // MARK: Writing

    /// Appends a field.
    /// - Parameters:
    ///   - name: a token. Bytes that a name forbids become `-`; a field with an empty name is omitted.
    ///   - value: the value. Bytes that a value forbids, such as CR and LF, become spaces, as RFC 9110, section 5.5,
    ///     allows. So a peer's value cannot add fields.
    public mutating func append(_ name: String, _ value: String) {
        if name.isEmpty { return }
        for byte in name.utf8 { lines.append(isTokenByte(byte) ? byte : UInt8(ascii: "-")) }
        lines += ": ".utf8
        for byte in value.utf8 { lines.append(isValueByte(byte) ? byte : UInt8(ascii: " ")) }
        lines += "\r\n".utf8
    }

    /// Removes all fields `name`.
    public mutating func remove(_ name: String) {
        guard has(name) else { return }
        var name = name
        var kept: [UInt8] = []
        name.withUTF8 { name in forEachLine { if !$0.line(0, isNamed: name) { kept += $0 } } }
        lines.replaceSubrange(start..., with: kept)
    }

    /// Copies a validated head into the previous one's memory.
    /// - Parameter start: the index of its fields.
    mutating func replace(with head: Bytes, from start: Int) {
        self.start = start
        if lines.isEmpty { return lines = [UInt8](head) }
        // Heads have similar lengths. Emptying the array first would take as long as the copy.
        let common = Swift.min(lines.count, head.count)
        lines.withUnsafeMutableBytes { $0.copyMemory(from: head.slice(0..<common)) }
        if head.count > common {
            lines.append(contentsOf: head.slice(common..<head.count))
        } else if lines.count > common {
            lines.removeLast(lines.count - common)
        }
    }

    /// Calls `body` with each line, including its end.
    func forEachLine(_ body: (Bytes) -> Void) {
        lines.withUnsafeBytes { bytes in
            var start = start
            while let end = bytes.position(of: 0x0A, from: start) {
                body(bytes.slice(start..<end + 1))
                start = end + 1
            }
        }
    }
}

extension Headers: Sequence {
    /// The names and values, in order.
    public func makeIterator() -> some IteratorProtocol<(name: String, value: String)> {
        var fields: [(name: String, value: String)] = []
        forEachLine { line in
            guard let colon = line.position(of: UInt8(ascii: ":")) else { return }
            fields.append((line.slice(0..<colon).text, line.slice(colon + 1..<line.count - 2).trimmed.text))
        }
        return fields.makeIterator()
    }
}

extension Headers: Hashable, CustomStringConvertible {
    /// True if both have the same lines.
    public static func == (one: Headers, other: Headers) -> Bool {
        one.lines[one.start...] == other.lines[other.start...]
    }

    /// Feeds the lines to `hasher`.
    public func hash(into hasher: inout Hasher) { hasher.combine(lines[start...]) }

    /// The lines.
    public var description: String { String(decoding: lines[start...], as: UTF8.self) }
}

extension ByteWriter {
    /// Appends a field value, sanitised as in `Headers.append`.
    mutating func append(value: String) { append(value.utf8.lazy.map { isValueByte($0) ? $0 : UInt8(ascii: " ") }) }

    /// Appends the fields without those in `own`, which the library writes.
    mutating func append(_ headers: Headers, without own: [StaticString]) {
        headers.forEachLine { line in
            if !own.contains(where: { $0.withUTF8Buffer { line.line(0, isNamed: $0) } }) { append(line) }
        }
    }
}
