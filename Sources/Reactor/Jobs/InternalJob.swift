/// One of the library's own jobs, which calls a closure. It is not a handler: a loop that ends before it has run does
/// not report it, since the handlers that it would have served are reported themselves.
package final class InternalJob: Job {
    private let body: () -> Void
    private let end: (() -> Void)?

    /// - Parameter end: called in place of `body` if the loop ends first.
    package init(_ body: @escaping () -> Void, ifLoopEnds end: (() -> Void)? = nil) {
        self.body = body
        self.end = end
        super.init()
    }

    package override func run() { body() }

    package override var isReportedUndelivered: Bool { false }

    package override func discardAndRelease() {
        end?()
        super.discardAndRelease()
    }
}
