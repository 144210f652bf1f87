import CLinux

@testable import PromisesTestSupport

/// Nearly every operator and combinator in random expressions on several threads at once: two loops, a plain thread, a
/// pool and tasks. Each promise ends as the reference allows, each handler runs at most once, on its own thread, and is
/// released; nothing is left undelivered, and no descriptor is left open.
///
/// A fixed number of expressions in each run. `STORM_SECONDS=60` runs for that long, and then also counts the
/// descriptors of the process, so let it run alone: `swift test --sanitize=thread --filter OperatorStormTests`. A
/// failure names the seed of its expression; `STORM_SEED=1234` repeats that one, since threads never meet in the same
/// way twice. Without it the seeds of `STORM_SECONDS` begin with `STORM_FIRST_SEED`, or with the time.
@Suite(.serialized, .ownThread) struct OperatorStormTests {
    @Test func everyPromiseEndsAsTheReferenceAllows() throws {
        let seconds = environmentNumber("STORM_SECONDS")
        let seed = environmentNumber("STORM_SEED").map(UInt64.init)
        let descriptors = Self.descriptors
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
            case .unhandledRejection(let error, _): error is StormFlaw || error is PromiseError
            case .abandoned(let promise): promise.callSite?.file.contains("Storm") == true
            // A matter of time, and other tests in this process set the time to none.
            case .loopNotRunning(let callSite): callSite.file.contains("Storm")
            case .hangStalled(_, let callSite): callSite.file.contains("Storm")
            default: false
            }
        })
        defer {
            undelivered.stop()
            expected.stop()
        }
        storm.rage(for: seconds.map { .seconds($0) }, atLeast: seconds == nil ? scaled(10_000) : 1)
        if seconds != nil || seed != nil { print("operator storm from seed \(first): \(storm.counts.text)") }
        for complaint in storm.complaints.value.prefix(5) { Issue.record("\(complaint)") }
        expectEqual(undelivered.lines, [])
        expect(storm.counts.values.value > 0 && storm.counts.errors.value > 0 || seed != nil)
        if seconds != nil { expectEqual(Self.descriptors, descriptors) }
    }

    private static var descriptors: [String] {
        guard let folder = opendir("/proc/self/fd") else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        // The folder's own descriptor comes and goes.
        return names.filter { $0 != "\(dirfd(folder))" }.sorted()
    }
}
