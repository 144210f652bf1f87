/// Calls a closure in its deinit.
package final class LastWords {
    private let body: () -> Void

    package init(_ body: @escaping () -> Void) { self.body = body }

    deinit { body() }

    /// For a closure that only has to hold it.
    package func use() {}
}
