/// Where a Unix socket is found: a path, or a name in the kernel's abstract space, which has no file.
///
/// An object, so that an address of the common kinds stays three words: every connection keeps one.
final class UnixSocketPath: Hashable, Sendable {
    /// The bytes of the path, or of the abstract name without the zero that stands before it in the kernel's form.
    let bytes: [UInt8]
    let isAbstract: Bool

    /// What sun_path holds beside the byte that ends a path, or begins an abstract name.
    static var capacity: Int { 107 }

    init(bytes: [UInt8], isAbstract: Bool) {
        // In text an @ begins an abstract name; this is the same file.
        self.bytes = !isAbstract && bytes.first == UInt8(ascii: "@") ? Array("./".utf8) + bytes : bytes
        self.isAbstract = isAbstract
    }

    /// Why `bytes` cannot be such a name; `nil` if they can.
    static func flaw(of bytes: [UInt8], isAbstract: Bool) -> String? {
        let kind = isAbstract ? "abstract name" : "path"
        if bytes.isEmpty { return "the \(kind) is empty" }
        if bytes.contains(0) { return "the \(kind) contains a zero byte" }
        let count = UnixSocketPath(bytes: bytes, isAbstract: isAbstract).bytes.count
        return count <= capacity ? nil : "the \(kind) has \(count) bytes; a Unix address takes \(capacity)"
    }

    /// As it stands behind `unix:`.
    var text: String { (isAbstract ? "@" : "") + name }

    /// Without the mark of abstract names. Bytes that are no UTF-8, which only another program can have chosen, are shown as
    /// U+FFFD; the kernel gets them as they are.
    var name: String { String(decoding: bytes, as: UTF8.self) }

    static func == (one: UnixSocketPath, other: UnixSocketPath) -> Bool {
        one.isAbstract == other.isAbstract && one.bytes == other.bytes
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(isAbstract)
        hasher.combine(bytes)
    }
}
