@testable import PromisesTestSupport

/// Random programs do exactly the same on the library as on the reference model: which handlers run, in which order
/// over all promises, with which outcome; how each promise ends; the reports; and nothing leaks.
///
/// A failure prints its seed, the program, minimized, and both traces. To repeat one seed, and to run more of them:
///
///     MODEL_SEED=1234 swift test --filter ModelChecking
///     MODEL_SEEDS=1000000 swift test --filter ModelChecking
///
/// `MODEL_SEEDS=1000000 MODEL_FIRST_SEED=5000000` runs other seeds; `MODEL_VERBOSE=1` prints each program before it runs, for a
/// library that traps.
@Suite(.serialized) struct ModelCheckingTests {
    @Test func programsDoTheSame() {
        let repeated = environmentNumber("MODEL_SEED")
        let first = UInt64(repeated ?? environmentNumber("MODEL_FIRST_SEED") ?? 1)
        let count = repeated == nil ? environmentNumber("MODEL_SEEDS") ?? scaled(15_000) : 1
        let isVerbose = repeated != nil || getenv("MODEL_VERBOSE") != nil
        var failures = 0
        for seed in first..<first + UInt64(count) where failures < 3 {
            let program = RandomProgram.program(seed: seed)
            if isVerbose { print("seed \(seed):\n\(program)\n") }
            let holds =
                switch seed % 3 {
                case 0: check(seed, program, PlainValue.self)
                case 1: check(seed, program, CountedValue.self)
                default: check(seed, program, WideValue.self)
                }
            if !holds { failures += 1 }
        }
    }

    private func check<Value: ModelValue>(_ seed: UInt64, _ program: Program, _ type: Value.Type) -> Bool {
        guard Comparison(program, type).difference != nil else { return true }
        let small = program.minimized { Comparison($0, type).difference != nil }
        let comparison = Comparison(small, type)
        Issue.record(
            """
            MODEL_SEED=\(seed), with \(type)s: \(comparison.difference ?? "only the whole program fails")
            \(small)
            --- the model:
            \(comparison.expected)
            --- the library:
            \(comparison.seen)
            """)
        return false
    }
}

/// One program, on the model and on the library.
struct Comparison {
    let expected: Observation
    let seen: Observation

    init<Value: ModelValue>(_ program: Program, _ type: Value.Type) {
        expected = Observation(modelOf: program)
        seen = Observation(libraryOf: program, type)
    }

    /// The difference between them.
    var difference: String? {
        if expected.trace != seen.trace { return "the traces differ" }
        if expected.states != seen.states { return "the final states differ" }
        if seen.values < 0 || seen.strays > 0 { return "something was released twice, or on another thread" }
        if expected.handlers != seen.handlers { return "other handlers are left than those in circles" }
        // A circle of waiting promises keeps its values and errors forever.
        if expected.hasPending { return nil }
        if expected.unhandled != seen.unhandled { return "the reports of unhandled rejections differ" }
        if seen.waitingHandlers != 0 { return "handlers still wait" }
        if seen.values != 0 { return "a value is leaked" }
        return seen.isComplete ? nil : "something else was reported"
    }
}

/// The results of a program.
struct Observation: CustomStringConvertible {
    var trace: [String] = []
    var states: [Int: String] = [:]
    var unhandled: [Rejection: Int] = [:]
    var hasPending = false
    var waitingHandlers = 0
    var values = 0
    /// The number of handlers that have neither run nor been dropped.
    var handlers = 0
    var strays = 0
    var isComplete = true

    init(modelOf program: Program) {
        let model = ModelPromises()
        defer { model.end() }
        let execution = Execution(model)
        perform(program, execution)
        for rejection in model.unhandled { unhandled[rejection, default: 0] += 1 }
        hasPending = model.hasPending
        handlers = model.handlerCount
    }

    init<Value: ModelValue>(libraryOf program: Program, _ type: Value.Type) {
        let census = Census()
        let reports = Reports()
        // The recorder claims only events on this very thread.
        let thread = pthread_self()
        nonisolated(unsafe) let unsafeReports = reports
        let recorder = LogRecorder(where: { _ in pthread_equal(pthread_self(), thread) != 0 }) { event in
            switch event {
            case .abandoned(let promise): unsafeReports.onAbandoned(Int(promise.callSite?.line ?? 0))
            case .unhandledRejection(let error, let promise):
                unsafeReports.unhandled.append(
                    Rejection(fault: Fault(error), origin: promise.callSite.map { Int($0.line) }))
            default: unsafeReports.others += 1
            }
        }
        defer { recorder.stop() }
        inLoop { loop in
            let implementation = LibraryPromises<Value>(loop, census)
            let execution = Execution(implementation)
            reports.onAbandoned = { [unowned implementation] in implementation.onAbandoned($0) }
            perform(program, execution)
            reports.onAbandoned = { _ in reports.others += 1 }
            waitingHandlers = loop.waitingHandlers
        }
        reports.onAbandoned = { _ in }
        for rejection in reports.unhandled { unhandled[rejection, default: 0] += 1 }
        isComplete = reports.others == 0
        (values, handlers) = (census.valueCount, census.handlerCount)
        strays = census.strays
    }

    /// Used on one thread.
    private final class Reports {
        var unhandled: [Rejection] = []
        var others = 0
        var onAbandoned: (Int) -> Void = { _ in }
    }

    private mutating func perform(_ program: Program, _ execution: Execution<some PromiseImplementation>) {
        execution.run(program.steps)
        execution.implementation.turn()
        execution.releaseResolvers()
        states = execution.states
        execution.cancelAll()
        execution.releasePromises()
        trace = execution.trace
    }

    var description: String {
        (trace + states.sorted { $0.key < $1.key }.map { "p\($0.key) ends as \($0.value)" }
            + unhandled.map { "reported as unhandled: \($0.key), \($0.value) times" }.sorted()
            + ["left in the end: \(handlers) handlers, \(values) values; handlers that wait: \(waitingHandlers)"])
            .joined(separator: "\n")
    }
}
