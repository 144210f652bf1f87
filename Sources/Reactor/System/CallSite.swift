/// The source line that created or started something: a job, a timer, a hold.
public struct CallSite: Hashable, Sendable, CustomStringConvertible {
    // A pointer to a string literal, which is never freed, and is null-terminated. The struct has two words, so that
    // each traced object can keep one.
    private let name: StaticText
    /// The line number.
    public let line: UInt32

    @usableFromInline package init(_ file: StaticString, _ line: UInt) {
        name = StaticText(file)
        self.line = UInt32(truncatingIfNeeded: line)
    }

    /// The calling line, unless another one is given: for a test of a `conf.logHandler`.
    public init(file: StaticString = #fileID, line: UInt = #line) { self.init(file, line) }

    /// Whether the call site is known. For a property it is not: `file` is empty and the line is 0.
    package var isKnown: Bool { line != 0 }

    /// The call site whose parts another thread has left; `nil` without a file.
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
