/// Where in the source something was made or started: a promise, a timer, a hold.
public struct CallSite: Hashable, Sendable, CustomStringConvertible {
    // A pointer into the program's constants, which live as long as it does; null-terminated, as all literals are.
    // Two words, so that it fits beside an error in a promise.
    private let name: StaticText
    /// The line.
    public let line: UInt32

    /// The place `file`, as `#fileID` names it, and `line`.
    public init(_ file: StaticString, _ line: UInt) {
        name = StaticText(file)
        self.line = UInt32(truncatingIfNeeded: line)
    }

    /// Whether the place is known. That of a property, such as `firstValue`, is not, and has no file and line 0.
    public var isKnown: Bool { line != 0 }

    /// The file as `Module/File.swift`.
    public var file: String { name.text }

    /// `Module/File.swift:12`
    public var description: String { isKnown ? "\(file):\(line)" : "an unknown line" }
}

/// A `StaticString` in one word.
// @unchecked: the characters are constant.
package struct StaticText: @unchecked Sendable, Hashable {
    private let characters: UnsafePointer<UInt8>

    package init(_ text: StaticString) { characters = text.utf8Start }

    package var text: String { String(cString: characters) }
}
