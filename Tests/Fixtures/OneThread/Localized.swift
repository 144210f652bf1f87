import Foundation
import Promises

/// All that a program with Foundation needs for `localizedDescription`.
extension PromiseError: @retroactive LocalizedError {
    /// The text for people.
    public var errorDescription: String? { description }
}
