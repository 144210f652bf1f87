/// The source line that created or started a job, timer, hold or other object.
public struct CallSite: Hashable, Sendable, CustomStringConvertible {
    // A pointer to a null-terminated string literal, never freed. Two words in all, so each traced object can keep a
    // call site.
    private let name: StaticText
    /// The line number.
    public let line: UInt32

    @usableFromInline package init(_ file: StaticString, _ line: UInt) {
        name = StaticText(file)
        self.line = UInt32(truncatingIfNeeded: line)
    }

    /// Creates the calling line's call site, or a given one for testing a `conf.logHandler`.
    public init(file: StaticString = #fileID, line: UInt = #line) { self.init(file, line) }

    /// True when the call site is known. An unknown one has an empty `file` and line 0.
    package var isKnown: Bool { line != 0 }

    /// Creates a call site from parts that another thread left; `nil` without a file.
    init?(fileAt address: UInt, line: UInt32) {
        guard let characters = UnsafePointer<UInt8>(bitPattern: address), line != 0 else { return nil }
        name = StaticText(characters: characters)
        self.line = line
    }

    var fileAddress: UInt { UInt(bitPattern: name.characters) }

    /// The file as `Module/File.swift`.
    public var file: String { name.text }

    /// `Module/File.swift:12`
    public var description: String { isKnown ? "\(file):\(line)" : "an unknown line" }
}

/// A `StaticString` in one word.
// @unchecked: the characters are constant.
package struct StaticText: @unchecked Sendable, Hashable {
    fileprivate let characters: UnsafePointer<UInt8>

    fileprivate init(characters: UnsafePointer<UInt8>) { self.characters = characters }

    package init(_ text: StaticString) { characters = text.utf8Start }

    package var text: String { String(cString: characters) }
}
