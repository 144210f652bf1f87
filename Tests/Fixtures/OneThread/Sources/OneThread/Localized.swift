import Foundation
import Promises

/// All that a program that uses Foundation needs for `localizedDescription`.
extension PromiseError: @retroactive LocalizedError {}
