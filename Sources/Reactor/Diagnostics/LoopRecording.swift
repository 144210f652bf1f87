/// A timeline of everything that a loop does for a few seconds. The loop's thread writes it, then hands it over.
// @unchecked Sendable: one thread at a time has the recording, and subjects are `Sendable`.
package final class LoopRecording: @unchecked Sendable {
    package enum Content: Sendable {
        case wait, turn
        case handler(HandlerKind, CallSite?, descriptor: CInt?, subject: (any AnyObject & Sendable)?)
    }

    /// With times in nanoseconds by the loop's clock.
    package struct Slice: Sendable {
        package let content: Content
        package let began: Int64
        package var ended: Int64
        /// The index of the handler that made this one ready.
        package var cause: Int32 = -1
    }

    package private(set) var slices: [Slice] = []
    /// Slices omitted because of the limit.
    package private(set) var omitted = 0
    private let most: Int
    private unowned let jobs: LoopJobs
    /// For each ready job, by address, the handler that queued it. Addresses are compared, never dereferenced.
    private var causes: [UnsafeMutableRawPointer: Int32] = [:]

    init(of jobs: LoopJobs, atMost most: Int) {
        self.jobs = jobs
        self.most = most
    }

    func add(_ content: Content, _ began: Int64, _ ended: Int64) {
        if slices.count < most {
            slices.append(Slice(content: content, began: began, ended: ended))
        } else {
            omitted += 1
        }
    }

    struct Begun {
        fileprivate let index: Int
        /// The last ready job, which stays queued unless a turn runs inside the handler.
        fileprivate let last: Unmanaged<Job>?
    }

    /// Returns `nil` if there is no room. `job` calls the handler, if any.
    func begin(_ content: Content, at moment: Int64, _ job: UnsafeMutableRawPointer?) -> Begun? {
        let cause = job.flatMap { causes.removeValue(forKey: $0) }
        guard slices.count < most else {
            omitted += 1
            return nil
        }
        slices.append(Slice(content: content, began: moment, ended: moment, cause: cause ?? -1))
        return Begun(index: slices.count - 1, last: jobs.ready.tail)
    }

    /// - Parameter wasInterrupted: true if a turn ran inside the handler, so its queued jobs are unknown.
    func end(_ begun: Begun, at moment: Int64, wasInterrupted: Bool) {
        slices[begun.index].ended = moment
        if wasInterrupted { return }
        var next = begun.last.map { $0._withUnsafeGuaranteedRef { $0.next } } ?? jobs.ready.head
        while let job = next {
            causes[job.toOpaque()] = Int32(truncatingIfNeeded: begun.index)
            next = job._withUnsafeGuaranteedRef { $0.next }
        }
    }
}
