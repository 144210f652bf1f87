@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Async functions around promises, as a library has them.
@Suite(.ownThread) struct AsyncFacadeTests {
    /// Its async functions belong to no actor.
    private final class Sensor {
        enum Source: CaseIterable {
            // Handlers or timers of the loop are needed.
            case timer, handler, combinator, limit
            // Any thread settles them.
            case resolver, task, pool, settled

            var needsLoop: Bool { [.timer, .handler, .combinator, .limit].contains(self) }
        }

        func report(_ source: Source) -> Promise<Int> {
            let external = Promise<Int> { resolver in
                try? ThreadPool.shared.dispatch { resolver.fulfill(20) }
            }
            return switch source {
            case .timer: after(.milliseconds(1)).map { 20 }
            case .handler: external.map { $0 }
            case .combinator: when(fulfilled: external, external).map { $0.0 }
            case .limit: external.timeout(.seconds(60))
            case .resolver: external
            case .task: Promise { 20 }
            case .pool: Promise(on: .shared) { 20 }
            case .settled: .value(20)
            }
        }

        @concurrent func degreesElsewhere(_ source: Source) async throws -> Int {
            try await firstly { report(source) }.value
        }

        nonisolated(nonsending) func degrees(_ source: Source) async throws -> Int {
            try await firstly { report(source) }.value
        }
    }

    /// It lives on the loop, and so does its sensor.
    private actor Station {
        private let home: LoopRemote
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
        init(_ home: LoopRemote) { self.home = home }

        func degrees(_ source: Sensor.Source) async throws -> Int { try await Sensor().degrees(source) }

        func degreesElsewhere(_ source: Sensor.Source) async throws -> Int {
            try await Sensor().degreesElsewhere(source)
        }
    }

    /// An actor without its own executor.
    private actor Hermit {
        func degrees(_ source: Sensor.Source) async throws -> Int { try await Sensor().degrees(source) }
    }

    @Test(.inRealTime, arguments: Sensor.Source.allCases) private func theResultOrTheReason(source: Sensor.Source)
        throws
    {
        let (station, hermit) = (Station(EventLoop.current.remote), Hermit())
        let here: [@Sendable () async throws -> Int] = [{ try await station.degrees(source) }]
        let elsewhere: [@Sendable () async throws -> Int] = [
            { try await station.degreesElsewhere(source) },
            { try await hermit.degrees(source) },
        ]
        for (body, isHere) in here.map({ ($0, true) }) + elsewhere.map({ ($0, false) }) {
            let (promise, resolver) = Promise<Int>.pending()
            // Without the loop as its preferred executor: on Swift's pool.
            Task.detached { do { resolver.fulfill(try await body()) } catch { resolver.reject(error) } }
            let result = Result { try hang(promise) }
            if isHere || !source.needsLoop {
                expectEqual(try? result.get(), 20)
            } else {
                let text = "\(result)"
                expect(text.contains("nonisolated(nonsending)") && text.contains("AsyncFacadeTests.swift"), "\(text)")
            }
        }
    }

    @Test(.inRealTime) func aBodyOfAPromiseToo() throws {
        let result = Result { try hang(Promise { try await firstly { after(.seconds(60)).asPromise() }.value }) }
        expect("\(result)".contains("nonisolated(nonsending)"), "\(result)")
    }
}
