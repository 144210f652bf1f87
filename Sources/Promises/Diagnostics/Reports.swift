/// What the core reports of itself.
@usableFromInline
enum Reports {
    static func abandoned(_ core: PromiseCore) {
        let event = LogEvent.abandoned(core.provenance(origin: core.creationSite))
        if conf.abandoned == .trap { fatalError(event.description) }
        conf.log(event)
    }

    static func unhandled(_ error: any Error, _ origin: CallSite?, _ record: TraceRecord?) {
        unhandled(error, TraceRegistry.provenance(record, origin: origin))
    }

    static func unhandled(_ error: any Error, _ provenance: @autoclosure () -> Provenance) {
        // What was abandoned, and what a loop has left behind, has been reported by then.
        if error.isCancelled || [.abandoned, .loopEnded].contains(error as? PromiseError) { return }
        conf.log(.unhandledRejection(error, provenance()))
    }
}
