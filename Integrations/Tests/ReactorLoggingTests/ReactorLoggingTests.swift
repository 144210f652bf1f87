import Glibc
import Logging
import Promises
import Reactor
import ReactorIO
import ReactorLogging
import Synchronization
import Testing

/// The library's reports in swift-log. Serialized, since the library has one log handler.
@Suite(.serialized) struct ReactorLoggingTests {
    struct Flaw: Error {}

    /// Records the logged messages.
    final class Record: LogHandler, Sendable {
        struct Line: Sendable {
            let level: Logger.Level
            let message: String
            let metadata: Logger.Metadata
        }

        let lines: Mutex<[Line]>
        let own: Mutex<Logger.Metadata> = Mutex([:])

        init() { lines = Mutex([]) }

        var all: [Line] { lines.withLock { $0 } }
        var logLevel: Logger.Level {
            get { .trace }
            set {}
        }
        var metadata: Logger.Metadata {
            get { own.withLock { $0 } }
            set { own.withLock { $0 = newValue } }
        }
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { own.withLock { $0[key] } }
            set { own.withLock { $0[key] = newValue } }
        }

        func log(event: Logging.LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
            lines.withLock { $0.append(Line(level: event.level, message: "\(event.message)", metadata: all)) }
        }

        var logger: Logger { Logger(label: "test") { _ in self } }
    }

    private func recording(_ body: (Record) throws -> Void) rethrows {
        let record = Record()
        let before = conf.logHandler
        defer { conf.logHandler = before }
        conf.log(to: record.logger)
        try body(record)
    }

    @Test func eventsHaveALevelAndMetadata() {
        recording { record in
            EventLoop.withLoop(clock: VirtualClock()) { _ in
                Promise<Int>(error: Flaw()).named("answer").cauterize()
                _ = Promise<Int> { _ in }
                hang(after(.seconds(1)))
            }
            let lines = record.all
            let cauterized = lines.first { $0.metadata["event"] == "cauterized" }
            #expect(cauterized?.level == .notice && cauterized?.message.contains("cauterized: Flaw()") == true)
            #expect(cauterized?.metadata["error"] == "Flaw()" && cauterized?.metadata["error.type"] == "Flaw")
            #expect(cauterized?.metadata["promise"] == "answer")
            let abandoned = lines.first { $0.metadata["event"] == "abandoned" }
            #expect(abandoned?.level == .error)
            let origin = "\(abandoned?.metadata["origin"] ?? "")"
            #expect(origin.contains("ReactorLoggingTests.swift"))
        }
    }

    @Test func theLimitOfTheLibraryApplies() {
        recording { record in
            EventLoop.withLoop(clock: VirtualClock()) { _ in
                for _ in 0..<100 { Promise<Int>(error: Flaw()).cauterize() }
                hang(after(.seconds(1)))
            }
            let count = record.all.count { $0.metadata["event"] == "cauterized" }
            #expect((1...20).contains(count), "ten a second, of real time")
        }
    }

    @Test func eachKindHasALevel() {
        for kind in Promises.LogEvent.Kind.allCases { #expect(kind.level >= .notice) }
    }

    @Test func errorsOfConnectionsAreLimitedAndCounted() throws {
        let clock = VirtualClock()
        let record = Record()
        try EventLoop.withLoop(clock: clock) { _ in
            let (one, other) = try Connection.pair()
            let handle = record.logger.connectionErrors(limit: (burst: 2, period: .seconds(1)))
            for _ in 0..<5 { handle(Flaw(), one) }
            #expect(record.all.count == 2)
            clock.advance(by: .seconds(1))
            handle(Flaw(), one)
            #expect(record.all.count == 3)
            #expect(record.all[2].metadata["suppressed"] == "3" && record.all[2].metadata["error"] == "Flaw()")
            one.abort()
            other.abort()
        }
    }

    @Test func aLoggerKnowsItsConnectionAndItsThread() throws {
        let record = Record()
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            let client = try hang(connect(to: listener.localAddress))
            let logger = record.logger.with(client)
            logger.info("hello")
            #expect(record.all.first?.metadata["connection.peer"] == "\(listener.localAddress)")
            #expect(record.all.first?.metadata["connection.local"] == "\(client.localAddress!)")
            client.abort()
            listener.close()
            let remote = try EventLoop.spawn(name: "worker")
            let found = Guarantee(on: remote) { Logger.MetadataProvider.threadName.get() }
            #expect(hang(found) == ["thread": "worker"])
            remote.stop()
            remote.join()
        }
    }
}
