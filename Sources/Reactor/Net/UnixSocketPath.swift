/// A Unix socket's name: a path, or a name without a file in the kernel's abstract space.
///
/// A class, so that a `SocketAddress`, which every connection stores, takes only three words.
final class UnixSocketPath: Hashable, Sendable {
    /// The bytes, without the leading zero of abstract names.
    let bytes: [UInt8]
    let isAbstract: Bool

    /// The size of sun_path, less the zero that ends a path or begins an abstract name.
    static var capacity: Int { 107 }

    init(bytes: [UInt8], isAbstract: Bool) {
        // Text that begins with @ would mean an abstract name; `./` keeps the path's meaning.
        self.bytes = !isAbstract && bytes.first == UInt8(ascii: "@") ? Array("./".utf8) + bytes : bytes
        self.isAbstract = isAbstract
    }

    /// Returns `nil` if `bytes` can be a name.
    static func problem(of bytes: [UInt8], isAbstract: Bool) -> String? {
        let kind = isAbstract ? "abstract name" : "path"
        if bytes.isEmpty { return "the \(kind) is empty" }
        if bytes.contains(0) { return "the \(kind) contains a zero byte" }
        let count = UnixSocketPath(bytes: bytes, isAbstract: isAbstract).bytes.count
        return count <= capacity ? nil : "the \(kind) has \(count) bytes; a Unix address takes \(capacity)"
    }

    /// The text after `unix:`.
    var text: String { (isAbstract ? "@" : "") + name }

    /// The name without the @ of abstract names. Bytes that are not UTF-8, from another program, appear as U+FFFD; the
    /// kernel gets the original bytes.
    var name: String { String(decoding: bytes, as: UTF8.self) }

    static func == (one: UnixSocketPath, other: UnixSocketPath) -> Bool {
        one.isAbstract == other.isAbstract && one.bytes == other.bytes
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(isAbstract)
        hasher.combine(bytes)
    }
}
