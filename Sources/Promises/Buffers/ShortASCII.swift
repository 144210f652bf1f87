extension String {
    /// A text of at most 15 bytes of ASCII, which takes no memory of its own; `nil` for any other bytes.
    ///
    /// Most lines of protocols are such: numbers and commands. The validation of UTF-8, which any text goes through, takes
    /// several times as many instructions as all of this.
    @inline(__always)
    init?(shortASCII bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= 15 else { return nil }
        let text = Self.words(of: bytes)
        guard (text.0 | text.1) & 0x8080_8080_8080_8080 == 0 else { return nil }
        if Self.isLaidOutAsKnown {
            // Sound since the words mean what the constant says, and neither text owns memory. A cast would count a reference.
            self = ""
            withUnsafeMutableBytes(of: &self) {
                $0.storeBytes(of: (text.0, text.1 | (0xE0 | UInt64(bytes.count)) << 56), as: Words.self)
            }
        } else {
            self.init(unsafeUninitializedCapacity: 15) { text in
                UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
                return bytes.count
            }
        }
    }

    /// Two words with the bytes in their order, the first one lowest: what a short text is, with its length and the mark of
    /// ASCII in the last byte.
    private typealias Words = (UInt64, UInt64)

    /// Whether the compiler lays out a short text so. It knows the answer, which therefore takes no instruction.
    @inline(__always)
    private static var isLaidOutAsKnown: Bool {
        guard MemoryLayout<String>.size == MemoryLayout<Words>.size else { return false }
        let words = unsafeBitCast("abcdefghi", to: Words.self)
        return words == (0x6867_6665_6463_6261, 0xE900_0000_0000_0069)
    }

    /// Of at most 15 bytes. Without a loop: of loads that overlap where there are fewer bytes than in two of them.
    @inline(__always)
    private static func words(of bytes: UnsafeRawBufferPointer) -> Words {
        let count = bytes.count
        if count > 8 {
            let last = bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
            return (bytes.loadUnaligned(as: UInt64.self), last >> UInt64(8 * (16 - count)))
        }
        if count >= 4 {
            let last = bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return (UInt64(bytes.loadUnaligned(as: UInt32.self)) | UInt64(last) << UInt64(8 * (count - 4)), 0)
        }
        return (bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }, 0)
    }
}
