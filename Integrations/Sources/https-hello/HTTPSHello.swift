// A server that answers HTTPS requests, with logs, metrics and an orderly end: https-hello CERTIFICATE KEY [HOST:PORT]
//
// Logs go to standard error. SIGTERM and SIGINT close idle connections and let requests in progress be answered. SIGHUP
// reloads the files, for new connections.

import Glibc
import Logging
import Metrics
import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import ReactorLifecycle
import ReactorLogging
import ReactorMetrics
import ReactorTLS
import ServiceLifecycle

@main
enum HTTPSHello {
    private static let requests = Counter(label: "requests_total")

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { fatalError("usage: https-hello CERTIFICATE KEY [HOST:PORT]") }
        LoggingSystem.bootstrap(StreamLogHandler.standardError, metadataProvider: .threadName)
        // A service with metrics calls MetricsSystem.bootstrap here, with its backend's factory.
        let logger = Logger(label: "https-hello")
        conf.log(to: logger)
        let tls = try TLSServer(
            TLSConfiguration(
                identity: TLSIdentity(certificateChainFile: arguments[1], privateKeyFile: arguments[2])))
        let address = try SocketAddress(arguments.count > 3 ? arguments[3] : "127.0.0.1:8443")
        let loops = try LoopGroup(loops: 2, name: "worker")
        let server = ServerService(name: "https", on: loops[0], drainTimeout: .seconds(10)) {
            let listener = try Listener.bind(address)
            let report = MetricsReport(every: .seconds(10))
            report.add(listener, name: "https")
            report.add(loops, name: "worker")
            try tls.reload(atSignal: SIGHUP) { error in
                logger.notice("\(error.map { "the old certificate stays: \($0)" } ?? "the certificate is read again")")
            }
            logger.notice("listening on \(listener.localAddress)")
            let served = listener.serveHTTP(on: loops, serving: .tls(tls), onError: logger.connectionErrors()) { _ in
                requests.increment()
                return Response("Hello, world!\n")
            }
            return (listener, served.ensure { report.cancel() })
        }
        let group = ServiceGroup(
            services: [LoopGroupService(loops), server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
    }
}
