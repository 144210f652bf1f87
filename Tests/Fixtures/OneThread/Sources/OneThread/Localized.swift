import Foundation
import Promises

/// All that a program with Foundation needs for `localizedDescription`.
extension PromiseError: @retroactive LocalizedError {}
