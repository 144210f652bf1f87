import Glibc
import Promises
import Reactor
import ReactorConsole
import ReactorHTTP
import ReactorIO

/// `FaultyServer FAULT CONSOLE`: a server of two loops with one of the faults below. It prints the address of its listener.
@main
enum FaultyServer {
    static func main() throws {
        guard CommandLine.arguments.count == 3, let fault = Fault(rawValue: CommandLine.arguments[1]) else {
            print("usage: FaultyServer \(Fault.allCases.map(\.rawValue).joined(separator: "|")) ADDRESS")
            exit(64)
        }
        try Console.start(at: CommandLine.arguments[2])
        let large = fault == .large ? try Large() : nil
        defer { withExtendedLifetime(large) {} }
        let group = try LoopGroup(loops: 2, name: "worker")
        let listener = try Listener.bind("127.0.0.1:0")
        let services = LoopLocal { Service(fault) }
        let options = ServeOptions(
            maxConnections: 20, stopSignals: [SIGTERM, SIGINT], drainTimeout: .milliseconds(100))
        let served = listener.serveHTTP(on: group, serving: options) { request in
            guard let connection = request.connection else { return Answer.now(Response(.serviceUnavailable)) }
            return services.value(for: connection).respond(to: request)
        }
        print("listening on \(listener.localAddress)")
        fflush(nil)
        try hang(served)
    }
}

enum Fault: String, CaseIterable {
    case stuck, slow, leaking, waiting, overloaded
    /// No fault, but ten thousand connections and a million pending promises.
    case large
}

/// The answers of a loop.
final class Service {
    private let fault: Fault
    private let limiter = Limiter(1)
    private let pool = try! ThreadPool(name: "reports", threads: 1)
    private var subscribers: [Resolver<String>] = []

    init(_ fault: Fault) {
        self.fault = fault
        if fault == .slow { EventLoop.current.schedule(every: .milliseconds(250)) { Self.compute(for: 120) } }
    }

    func respond(to request: Request) -> Answer {
        if request.path == "/later" {
            return .later(after(.milliseconds(1)).map { "Later\n" }.map { Response($0) }.asPromise())
        }
        guard request.path == "/report" else { return .now(Response("Hello\n")) }
        switch fault {
        case .stuck: return .later(stuck())
        case .slow, .large: return .now(Response("Report\n"))
        case .leaking: return .later(news())
        case .waiting: return .later(nested())
        case .overloaded: return .later(report())
        }
    }

    /// Blocks its loop.
    private func stuck() -> Promise<Response> {
        after(.milliseconds(10)).map {
            Self.compute(for: 60_000)
            return Response("Report\n")
        }.asPromise()
    }

    /// Nobody ever fulfills these promises.
    private func news() -> Promise<Response> {
        let (promise, resolver) = Promise<String>.pending()
        subscribers.append(resolver)
        return promise.named("news").map { Response($0) }
    }

    /// The inner call waits for the outer one, which waits for it.
    private func nested() -> Promise<Response> {
        limiter.run { [limiter] in
            limiter.run { after(.milliseconds(1)).asPromise() }.map { Response("Report\n") }
        }
    }

    /// One thread for all.
    private func report() -> Promise<Response> {
        Promise.value.map(on: pool) { Self.compute(for: 500) }.map { Response("Report\n") }
    }

    /// Works for so many milliseconds.
    private static func compute(for time: Int) {
        let end = ContinuousClock.now + .milliseconds(time)
        while ContinuousClock.now < end {}
    }
}

/// Connections that wait for input, as far as there are descriptors, and promises that wait for one another.
private final class Large {
    private var connections: [Connection] = []
    private var promises: [Guarantee<Int>] = []
    private let root = Guarantee<Int>.pending()

    init() throws {
        conf.trace = true
        for _ in 0..<5000 {
            guard let pair = try? Connection.pair() else { break }
            for connection in [pair.0, pair.1] {
                connection.read().done { _ in }
                connections.append(connection)
            }
        }
        for _ in 0..<1000 {
            let branch = root.guarantee.map { $0 + 1 }
            for _ in 0..<1000 { promises.append(branch.map { $0 + 1 }) }
        }
    }
}
