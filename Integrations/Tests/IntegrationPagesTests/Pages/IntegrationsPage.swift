// Made by .ci/snippets.py from docs/guides/integrations.md; do not edit.
// swift-format-ignore-file
import Foundation
import Logging
import Promises
import Reactor
import ReactorDispatch
import ReactorLifecycle
import ReactorLogging
import ReactorMetrics
import ReactorNIO
import ReactorTLS
import ReactorTracing
import ServiceLifecycle

// docs/guides/integrations.md: TLS
extension Snippets {
    static func integrations1() throws {
        let server = try TLSServer(
            TLSConfiguration(
                identity: TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key")))
        let served = try Listener.bind("0.0.0.0:7443").serve(.tls(server), onError: { error, _ in log(error) }) { connection in
            connection.forEachLine { line in connection.write(line + "\n") }
        }

        let client = try TLSClient()
        let answer = connect(to: "example.org:7443", tls: client, timeout: .seconds(5)).then { connection in
            connection.write("hello\n").then { connection.readLine() }
        }
        _ = server
        _ = served
        _ = client
        _ = answer
    }
}

// docs/guides/integrations.md: TLS
extension Snippets {
    static func integrations2() throws {
        // New tickets are encrypted with the first key; those of the second are accepted, and renewed.
        configuration.ticketKeys = [try TLSTicketKey(file: "today.key"), try TLSTicketKey(file: "yesterday.key")]
        try server.reload(configuration)
    }
}

// docs/guides/integrations.md: Logging
extension Snippets {
    static func integrations4() throws {
        LoggingSystem.bootstrap(StreamLogHandler.standardError, metadataProvider: .threadName)
        let logger = Logger(label: "server")
        conf.log(to: logger)
        let served = listener.serve(onError: logger.connectionErrors()) { connection in
            let logger = logger.with(connection)
            logger.info("a client has connected")
            return converse(connection, logger)
        }
        _ = logger
        _ = served
    }
}

// docs/guides/integrations.md: Metrics
extension Snippets {
    static func integrations5() throws {
        let report = MetricsReport(every: .seconds(10))        // on this thread's loop, which it does not keep alive
        report.add(EventLoop.current, name: "main")
        report.add(group, name: "worker")
        report.add(ThreadPool.shared, name: "shared")
        report.add(listener, name: "https")
        _ = report
    }
}

// docs/guides/integrations.md: Life cycle
extension Snippets {
    static func integrations6() async throws {
        let loops = try LoopGroup(name: "worker")
        let server = ServerService(name: "https", on: loops[0], drainTimeout: .seconds(10)) {
            let listener = try Listener.bind("0.0.0.0:8443")
            return (listener, listener.serve(on: loops, .tls(tls)) { connection in converse(connection) })
        }
        let group = ServiceGroup(
            services: [LoopGroupService(loops), server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
        _ = loops
        _ = server
        _ = group
    }
}

// docs/guides/integrations.md: Tracing
extension Snippets {
    static func integrations7() throws {
        let context = CarriedContext()                         // the ServiceContext that is current here
        let text = fetch(url)
            .then { page in context { parse(page) } }
            .map(on: pool) { tree in context { render(tree) } }
        _ = context
        _ = text
    }
}

// docs/guides/integrations.md: Dispatch
extension Snippets {
    static func integrations8() throws {
        let hash = file.map(on: DispatchQueue.global()) { bytes in digest(bytes) }

        let carrier = try EventLoop.current.carryByMainRunLoop()    // on the main thread
        RunLoop.main.run()
        _ = hash
        _ = carrier
    }
}

// docs/guides/integrations.md: SwiftNIO
extension Snippets {
    static func integrations9() throws {
        let sum = numbers.map(on: nioLoop.dispatcher) { numbers in add(numbers) }
        let promise = theirFuture.promise()
        let future = promise.future(on: nioLoop)
        _ = sum
        _ = promise
        _ = future
    }
}
