/// Where in the source a promise was made.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    // A pointer into the program's constants, which live as long as it does; null-terminated, as all literals are.
    // Two words, so that it fits beside an error in a promise.
    private let name: StaticName
    /// The line.
    public let line: UInt32

    // @unchecked: the characters are constant.
    private struct StaticName: @unchecked Sendable, Hashable {
        let characters: UnsafePointer<UInt8>
    }

    /// The place `file`, as `#fileID` names it, and `line`.
    public init(_ file: StaticString, _ line: UInt) {
        name = StaticName(characters: file.utf8Start)
        self.line = UInt32(truncatingIfNeeded: line)
    }

    /// The file as `Module/File.swift`.
    public var file: String { String(cString: name.characters) }

    /// `Module/File.swift:12`
    public var description: String { "\(file):\(line)" }
}
