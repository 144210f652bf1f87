/// The name of a Unix socket: a path, or a name in the kernel's abstract space, which has no file.
///
/// A class, so that an address of the common kinds stays three words: every connection stores one.
final class UnixSocketPath: Hashable, Sendable {
    /// The bytes of the path, or of the abstract name without the kernel's leading zero.
    let bytes: [UInt8]
    let isAbstract: Bool

    /// The size of sun_path without the byte that terminates a path or begins an abstract name.
    static var capacity: Int { 107 }

    init(bytes: [UInt8], isAbstract: Bool) {
        // In text, an @ begins an abstract name; with `./` the path names the same file.
        self.bytes = !isAbstract && bytes.first == UInt8(ascii: "@") ? Array("./".utf8) + bytes : bytes
        self.isAbstract = isAbstract
    }

    /// The reason why `bytes` cannot be such a name; `nil` if they can.
    static func problem(of bytes: [UInt8], isAbstract: Bool) -> String? {
        let kind = isAbstract ? "abstract name" : "path"
        if bytes.isEmpty { return "the \(kind) is empty" }
        if bytes.contains(0) { return "the \(kind) contains a zero byte" }
        let count = UnixSocketPath(bytes: bytes, isAbstract: isAbstract).bytes.count
        return count <= capacity ? nil : "the \(kind) has \(count) bytes; a Unix address takes \(capacity)"
    }

    /// The text after `unix:`.
    var text: String { (isAbstract ? "@" : "") + name }

    /// The name without the @ of abstract names. Bytes that are not UTF-8, which only another program can have chosen,
    /// appear as U+FFFD; the kernel gets the original bytes.
    var name: String { String(decoding: bytes, as: UTF8.self) }

    static func == (one: UnixSocketPath, other: UnixSocketPath) -> Bool {
        one.isAbstract == other.isAbstract && one.bytes == other.bytes
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(isAbstract)
        hasher.combine(bytes)
    }
}
