import CLinux

@testable import PromisesTestSupport

/// Operators and combinators in random expressions on several threads at once: two loops, pools, tasks, and loops that
/// end. Each promise ends as its expression allows, each handler runs at most once, on its own thread, and is released;
/// nothing is left undelivered.
///
/// A fixed number of expressions in each run; `STORM_SECONDS=60` runs for that long. A failure names the seed of its
/// expression; `STORM_SEED=1234` repeats that one, since threads never meet in the same way twice. Without it the seeds
/// of `STORM_SECONDS` begin with `STORM_FIRST_SEED`, or with the time.
@Suite(.serialized, .ownThread) struct OperatorStormTests {
    @Test func everyPromiseEndsAsItsExpressionAllows() throws {
        let seconds = environmentNumber("STORM_SECONDS")
        let seed = environmentNumber("STORM_SEED").map(UInt64.init)
        let firstOfMany = environmentNumber("STORM_FIRST_SEED").map(UInt64.init) ?? UInt64(time(nil)) << 20
        let first = seed ?? (seconds == nil ? 1 : firstOfMany)
        let storm = try OperatorStorm(seed: first, repeatsSeed: seed != nil)
        // Dropped rejected promises, and dropped resolvers, are part of it.
        let undelivered = LogRecorder(where: { event in
            switch event {
            case .undeliveredHandlers: storm.threads.value.contains(clinux_gettid())
            default: false
            }
        })
        let expected = LogRecorder(where: { event in
            switch event {
            case .unhandledRejection(let error, _): error is Flaw || error is PromiseError
            case .abandoned(let promise): promise.callSite?.file.contains("Storm") == true
            // A matter of time, and other tests in this process set the time to none.
            case .loopNotRunning(let callSite), .hangStalled(_, let callSite): callSite.file.contains("Storm")
            case .undeliveredHandlers: storm.guests.value.contains(clinux_gettid())
            default: false
            }
        })
        defer {
            undelivered.stop()
            expected.stop()
        }
        let open = Folder.names(in: "/proc/self/fd").count
        storm.rage(for: seconds.map { .seconds($0) }, atLeast: seconds == nil ? scaled(10_000) : 1)
        if seconds != nil || seed != nil {
            // Alone in its process; the loops of the storm have ended.
            expect(Folder.names(in: "/proc/self/fd").count <= open, "descriptors leak")
            print(
                "operator storm from seed \(first): \(storm.episodes.value) expressions, \(storm.witnesses.value) handlers, "
                    + "\(storm.values.value) values, \(storm.errors.value) errors")
        }
        for complaint in storm.complaints.value.prefix(5) { Issue.record("\(complaint)") }
        expectEqual(undelivered.lines, [])
        expect(storm.values.value > 0 && storm.errors.value > 0 || seed != nil)
    }
}
