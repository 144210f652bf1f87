import Reactor

/// The steps that led to a promise, oldest first: the line that made the first promise, then each operator.
///
/// Recorded while `conf.trace` is on. A chain of more than 64 steps keeps the first and at least the newest 32.
package struct Trace: Hashable, Sendable {
    package struct Step: Hashable, Sendable {
        /// The operator that made the promise, such as `map`; `made` for an initializer or `pending()`.
        package let operation: String
        package let callSite: CallSite
        /// See `Promise.named`.
        package let name: String?
        /// The trace of the promise that the handler has returned, if that promise is still pending.
        package let awaited: Trace?
    }

    package let steps: [Step]
    /// Missing steps after the first.
    package let omitted: Int
}

extension Trace: CustomStringConvertible {
    /// `made at App/Login.swift:12 → then at App/Login.swift:14 → map at App/Login.swift:17`
    package var description: String { text(namesLast: true) }

    /// - Parameter namesLast: true to include the last promise's name, which a report may show elsewhere.
    func text(namesLast: Bool) -> String {
        var texts = steps.map { $0.text(isNamed: true) }
        if !namesLast, let last = steps.last { texts[texts.count - 1] = last.text(isNamed: false) }
        if omitted > 0 { texts.insert("… \(omitted) step\(omitted == 1 ? "" : "s") …", at: min(1, texts.count)) }
        return texts.joined(separator: " → ")
    }
}

extension Trace.Step: CustomStringConvertible {
    /// `then at App/Login.swift:14`, with the name in quotes and the awaited promise in brackets.
    package var description: String { text(isNamed: true) }

    fileprivate func text(isNamed: Bool) -> String {
        let name = isNamed ? name.map { " \"\($0)\"" } : nil
        let place = callSite.isKnown ? " at \(callSite)" : ""
        return operation + place + (name ?? "") + (awaited.map { " [awaits: \($0)]" } ?? "")
    }
}
