import Reactor

/// A cancellation, in two passes.
///
/// The first one climbs (`Row`): from the cancelled promise to the one that it waits for, and so on, as long as no other
/// handler waits there; from a combinator to all its sources. It marks each of them with `isEndingCancelled`. A promise is
/// no longer wanted if all its waiters are marked, unless one is a clean-up in progress (`isStillWanted`). The pass may
/// drop tombstones from lists, and changes nothing else that code outside of the lists can see. The release of a
/// tombstone may report its unhandled error to `conf.logHandler`; no other user code runs.
///
/// The second one rejects the marked promises, from the cancelled one upwards: all of them before `cancel` returns,
/// except the topmost one that cleans up, and what waits for it. Those are rejected one after the other, as by any
/// rejection:
///
///     place   5       4      3               2              1              0
///             work ─▶ map ─▶ ensure       ─▶ then        ─▶ ensure      ─▶ map   ◀─ cancel()
///     ending  now     now    afterCleanUp    afterSource    afterSource    afterSource
///
/// Here `work` stops, and the closures of both `map` and of `then` are released at once. A job runs the `ensure` at 3;
/// then `then` is rejected, the other `ensure` runs, and so on. So a row of promises has one number to remember: the
/// place of the topmost promise that ends later, here 3 (`Row.topmostLater`).
///
/// A combinator of two promises, one of which another handler waits for too:
///
///     work ─▶ ensure ─▶ p1 ─┬▶ when ◀─ cancel()
///                       p2 ─┴▶
///                        └───▶ another handler
///
/// Inside `cancel()` first `work` ends, then the job of the `ensure` is queued, and then `when` leaves `p2`, which
/// continues. The promise of `when` is rejected after `p1`.
struct Cancellation {
    /// How a marked promise ends. It waits for its source, above it in its row; `Row.ending` decides.
    enum Ending {
        /// It leaves the list of its source, drops its operation, and is rejected.
        ///
        /// For promises with nothing above them that ends later.
        case now
        /// It leaves the list of its source. A job runs its operation, with the cancellation as the source's outcome.
        ///
        /// For the topmost clean-up, if it has not begun.
        case afterCleanUp
        /// It stays in the list, and is rejected when its source has settled, after its operation if that cleans up. (A
        /// combinator leaves the sources that have ended, or continue, and is rejected after the others.)
        ///
        /// For promises below one that ends later; and for the topmost clean-up, if it has begun (`ensureThen`): its
        /// source is then the promise of the closure, which is not cancelled.
        case afterSource
    }

    /// The promise where it begins.
    private let start: PromiseCore
    /// What was asked of that one.
    private let request: CancellationRequest
    /// Clean-ups to run after all other promises have ended.
    private var cleanUps: [CoreRef] = []
    /// Promises that any thread may settle, to be cancelled next.
    private var sources: [PromiseCore] = []
    /// What is called when one of `sources` has ended.
    private var ends: [(source: PromiseCore, body: () -> Void)] = []

    /// Cancels `core`. On any thread; promises of another thread's loop are cancelled there, later.
    static func cancel(_ core: PromiseCore, _ request: CancellationRequest) {
        var cancellation = Cancellation(start: core, request: request)
        cancellation.cancelRows(from: core)
        var next = 0
        while next < cancellation.sources.count {
            cancellation.cancelRows(from: cancellation.sources[next])
            next += 1
        }
        // The topmost first: its body may end the promise that the body below waits for.
        for (source, body) in cancellation.ends.reversed() {
            if source.isEndingLater { source.whenEnded(body) } else { body() }
        }
    }

    private init(start: PromiseCore, request: CancellationRequest) { (self.start, self.request) = (start, request) }

    /// Cancels `source` later, unless another handler waits for it, and calls `body` when it has ended.
    mutating func cancel(_ source: PromiseCore, andThen body: @escaping () -> Void) {
        sources.append(source)
        ends.append((source, body))
    }

    /// What is asked of `core`.
    private func request(of core: PromiseCore) -> CancellationRequest { core === start ? request : .unlessWanted }

    private mutating func cancelRows(from core: PromiseCore) {
        let rows = Row.all(from: core, sparesWanted: request(of: core).sparesWanted)
        for row in rows { end(row) }
        // Last, as a rejection reaches them: after the hooks of the work above.
        for cleanUp in cleanUps { EventLoop.ofCurrentThread.enqueueOwned(cleanUp.job) }
        cleanUps = []
        for row in rows { row.combinator?.leaveInputsThatGoOn() }
        // The handler that has kept it alive may belong to another thread, which has withdrawn it meanwhile, having seen the
        // waiter of a row. Both look again after they have withdrawn.
        for row in rows {
            guard let shared = row.shared, shared.role.contains(.externallySettled) else { continue }
            // A `when` of this thread may have kept it alive, which this cancellation has rejected: then it continues.
            if shared.has(.isLetGo) { continue }
            if !shared.isStillWanted() { sources.append(shared) }
        }
    }

    // MARK: The second pass

    private mutating func end(_ row: Row) {
        var next: PromiseCore? = row.first
        for place in 0..<row.height {
            guard let core = next else { return }
            next = end(core, at: place, of: row, request(of: core))
        }
    }

    /// Ends one promise.
    /// - Returns: its source. `nil` if no marked promise is left above it: it is the topmost one of its row, as are those of
    ///   other threads, or user code has settled it meanwhile, which only its source can do.
    private mutating func end(
        _ core: PromiseCore, at place: Int, of row: Row, _ request: CancellationRequest
    ) -> PromiseCore? {
        if core.role.contains(.externallySettled) {
            // The climb cannot pass through it: its source, if it has one, comes later; see `cancel(_:andThen:)`.
            if !request.sparesWanted || !core.isStillWanted() { core.cancelExternally(with: request.error, in: &self) }
            return nil
        }
        guard core.state.load().isClaimable, let loop = core.loop else { return nil }
        guard loop == .ofThisThread else {
            // A loop that has ended refuses the job: it has ended its promises itself, but for those that wait in a circle.
            loop.borrow { _ = $0.post(InternalJob { core.cancel(request) }) }
            return nil
        }
        // The promise that a handler has returned settles this core.
        let producer = core.settlingCore
        guard producer.marks.contains(.isEndingCancelled) else {
            // Code that has run meanwhile has turned the loop, and a handler has returned this promise.
            core.cancelUnlessWanted()
            return nil
        }
        switch request.isOutOfTime ? producer.endingByItself : row.ending(of: producer, at: place) {
        case .now: return endNow(core, producer, request, origin: row.origin)
        case .afterCleanUp:
            guard let (job, source) = producer.leaveSourceForJob(with: request.error) else {
                // It runs with the outcome of the source.
                producer.rejectAfterSource(with: request.error)
                return nil
            }
            cleanUps.append(job)
            return source
        case .afterSource:
            let source = producer.upstream.load().source
            if let combinator = producer.asCombinator {
                combinator.endWithInputs(rejectedWith: request.error)
            } else {
                producer.rejectAfterSource(with: request.error)
            }
            return source
        }
    }

    private func endNow(
        _ core: PromiseCore, _ producer: PromiseCore, _ request: CancellationRequest, origin: CallSite?
    ) -> PromiseCore? {
        var source: PromiseCore?
        switch producer.upstream.load() {
        // It has no source: its operation, or the combinator, stands for the work.
        case .none:
            // A linked one that cannot stop goes on for nobody.
            guard producer.cancelProducer() || producer !== core else {
                producer.marks.remove(.isEndingCancelled)
                return nil
            }
        // It is running.
        case .taken: break
        default: source = producer.leaveSource()
        }
        // The producer may be running right now, and end later.
        if producer !== core { producer.state.markClaimed() }
        // Code that ran when the operation was destroyed may have settled this core first.
        if core.isOpen && core.settled == nil { core.rejectCancelled(with: request.error, at: origin) }
        return source
    }
}

/// What was asked of the promise where a cancellation begins.
struct CancellationRequest {
    /// Rejects the promise, instead of `PromiseError.cancelled`.
    var error: (any Error)?
    /// Whether the promise continues if another handler waits for it: a waiter has withdrawn.
    var sparesWanted = false
    /// Whether the promise does not wait for clean-ups: its time limit has expired.
    var isOutOfTime = false

    static var unlessWanted: CancellationRequest { CancellationRequest(sparesWanted: true) }
}

extension PromiseError {
    /// Shared by all cancellations: each conversion of an enumeration to `any Error` makes a box, and a race cancels
    /// all promises but one.
    static let asCancellation: any Error = PromiseError.cancelled
}
