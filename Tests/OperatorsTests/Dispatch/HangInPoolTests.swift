@testable import PromisesTestSupport

/// A `hang` in a job of a pool that waits for another job of the pool.
@Suite(.ownThread) struct HangInPoolTests {
    /// The promises that wait for a job that no thread is left to run.
    enum Wanted: CaseIterable { case made, mapped, gathered, chained, returned, raced }

    /// Other ways to settle, or to get a thread back.
    enum Other: CaseIterable {
        case outside, busyThread, otherPool, raceWithOutside, gatheredWithOutside, timeLimit, deadline, timer
    }

    /// All at once, since a report comes after a second; cases that must not be reported begin first.
    @Test func onlyWhatCertainlyNeverEndsIsReported() throws {
        let reported = Gate()
        let recorder = LogRecorder(where: { Scene.line(of: $0) != nil }, reaction: { _ in reported.open() })
        var number: UInt = 0
        func scene(threads: Int, isRaw: Bool = false, _ jobs: [Scene.Job]) throws -> Scene {
            number += 1
            return try Scene(line: number, threads: threads, isRaw: isRaw, jobs)
        }
        try EventLoop.withLoop { _ throws in
            var others = try Other.allCases.map { other in
                try scene(threads: 2, [{ $0.hangs(Wanted.made.begin(on: $0.pool)) }, { other.run(in: $0) }])
            }
            // The pool starts another thread.
            others.append(try scene(threads: 2, [{ $0.hangs(Wanted.made.begin(on: $0.pool)) }]))
            let deadlocks = try Wanted.allCases.flatMap { wanted in
                try [(1, false), (2, false), (3, true)].map { threads, isRaw in
                    let job: Scene.Job = { $0.hangs(wanted.begin(on: $0.pool)) }
                    return try scene(threads: threads, isRaw: isRaw, Array(repeating: job, count: threads))
                }
            }
            reported.wait(deadlocks.count)
            for scene in deadlocks + others { scene.end() }
            func events(of scene: Scene) -> [LogEvent.Kind] {
                recorder.recorded.filter { Scene.line(of: $0) == scene.line }.map(\.kind)
            }
            for scene in deadlocks { expectEqual(events(of: scene), [.hangDeadlock]) }
            for scene in others { expectEqual(events(of: scene), []) }
        }
        recorder.stop()
    }
}

/// A pool whose jobs begin together.
private final class Scene: Sendable {
    typealias Job = @Sendable (Scene) -> Void

    let line: UInt
    let pool: ThreadPool
    let outside = Promise<Int>.pending()
    /// Blocks a thread until the end.
    let held = Gate()
    private let promises = Shared<[Promise<Int>]>([])
    private let count: Int
    private let (begun, go, waiting) = (Gate(), Gate(), Gate())

    init(line: UInt, threads: Int, isRaw: Bool, _ jobs: [Job]) throws {
        self.line = line
        pool = try ThreadPool(threads: threads)
        count = jobs.count
        for job in jobs {
            let run = { @Sendable [self] in
                begun.open()
                go.wait()
                job(self)
            }
            if isRaw { try pool.dispatch(run) } else { Promise(on: pool, run).cauterize() }
        }
        begun.wait(count)
        go.open(count)
    }

    func hangs(_ promise: Promise<Int>, timeout: Duration? = nil) {
        promises.change { $0.append(promise) }
        waiting.open()
        _ = try? hang(promise, timeout: timeout, Self.file, line)
    }

    func holdsThread() {
        waiting.open()
        held.wait()
    }

    func end() {
        waiting.wait(count)
        for promise in promises.value { promise.cancel() }
        outside.resolver.fulfill(1)
        held.open()
        pool.shutDown()
    }

    /// The line of a `hang` of a scene.
    static func line(of event: LogEvent) -> UInt? {
        switch event {
        case .hangStalled(_, let place), .hangDeadlock(_, let place): place.file == "\(file)" ? UInt(place.line) : nil
        default: nil
        }
    }

    private static let file: StaticString = "HangInPool.swift"
}

extension HangInPoolTests.Wanted {
    fileprivate func begin(on pool: ThreadPool) -> Promise<Int> {
        switch self {
        case .made: Promise(on: pool) { 1 }
        case .mapped: Promise.value(1).map(on: pool) { $0 }.map { $0 }.map(on: nil) { $0 }
        case .gathered:
            when(fulfilled: [Promise.value(1), Promise(on: pool) { 2 }, Promise(on: pool) { 3 }]).map { $0[0] }
        case .chained: Promise(on: pool) { 1 }.then(on: pool) { .value($0) }
        case .returned: after(.zero).then { Promise(on: pool) { 1 } }
        case .raced: race(Promise(on: pool) { 1 }, Promise(on: pool) { 2 })
        }
    }
}

extension HangInPoolTests.Other {
    fileprivate func run(in scene: Scene) {
        let (made, outside) = ({ Promise(on: scene.pool) { 1 } }, scene.outside.promise)
        switch self {
        case .outside: scene.hangs(outside)
        case .busyThread: scene.holdsThread()
        case .otherPool:
            guard let pool = try? ThreadPool(threads: 1) else { return }
            scene.hangs(
                Promise(on: pool) {
                    scene.held.wait()
                    return 1
                })
        case .raceWithOutside: scene.hangs(race(made(), outside))
        case .gatheredWithOutside: scene.hangs(when(fulfilled: [made(), outside]).map { $0[0] })
        case .timeLimit: scene.hangs(made(), timeout: .seconds(1000))
        case .deadline: scene.hangs(made().timeout(.seconds(1000)))
        case .timer:
            let timer = after(.seconds(1000))
            scene.hangs(made())
            timer.cancel()
        }
    }
}
