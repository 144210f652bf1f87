import Reactor

@usableFromInline
package enum Reports {
    static func unhandled(_ error: any Error, _ provenance: @autoclosure () -> Provenance) {
        // An abandoned promise, or a promise of an ended loop, has already been reported.
        if error.isCancelled || [.abandoned, .loopEnded].contains(error as? PromiseError) { return }
        conf.log(.unhandledRejection(error, provenance()))
    }
}
