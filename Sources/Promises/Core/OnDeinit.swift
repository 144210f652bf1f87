/// Calls a function when its last reference is released: with a handler that has run, or that never will.
package final class OnDeinit {
    private let body: () -> Void

    package init(_ body: @escaping () -> Void) { self.body = body }

    deinit { body() }
}
