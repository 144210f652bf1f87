import Reactor

/// The known facts about a reported promise: its name, and the line that made it.
public struct Provenance: Hashable, Sendable {
    /// The name, if it has one; see `Promise.named`.
    public let name: String?
    /// The type, such as `Promise<Int>`. Known if a handler waits for the promise, or if it is traced or named.
    public let type: String?
    /// The line that made the promise, if it called an initializer or `pending()`. For a rejection, the line of the
    /// first rejected promise.
    public let callSite: CallSite?
    package internal(set) var trace: Trace?
    /// The line of the `cauterize` that has logged the rejection; `nil` in other reports.
    package internal(set) var cauterizedAt: CallSite?

    /// Describes an unknown promise, for testing a `conf.logHandler`.
    public init(name: String? = nil, type: String? = nil, callSite: CallSite? = nil) {
        self.name = name
        self.type = type
        self.callSite = callSite
    }

    var isUnknown: Bool { name == nil && callSite == nil && trace == nil }

    /// `Promise<Int> "login" made at App/Login.swift:12 → map at App/Login.swift:14`
    var phrase: String {
        var words = [type ?? "promise"]
        if let name { words.append("\"\(name)\"") }
        if let trace, let first = trace.steps.first {
            words.append((first.isMaking ? "" : "of ") + trace.text(namesLast: false))
        } else if let callSite {
            words.append("made at \(callSite)")
        }
        return words.joined(separator: " ")
    }
}

extension Provenance: CustomStringConvertible {
    /// `the Promise<Int> "login" made at App/Login.swift:12 → map at App/Login.swift:14`, or only the known parts.
    public var description: String { (isUnknown ? "a " : "the ") + phrase }
}

extension Trace.Step {
    /// The operation of a promise that an initializer or `pending()` made.
    @usableFromInline static var making: StaticString { "made" }

    var isMaking: Bool { operation == Self.making.description }
}
