import Glibc
import Promises
import Reactor
import ReactorHTTP
import ReactorIO

package final class Service {
    package let listener: Listener
    private let settings: Settings
    /// False from the first signal on.
    private var isReady = true
    private let (stopped, stopping) = Promise<Void>.pending()

    package init(_ settings: Settings) throws {
        self.settings = settings
        listener = try Listener.inherited() ?? Listener.bind(settings.address)
    }

    /// Serves until SIGTERM or SIGINT. Further signals change nothing: the limits of the settings hold.
    package func run() throws -> Promise<DrainResult> {
        let options = ServeOptions(maxConnections: 10_000, memoryLimit: 256 << 20)
        let served = listener.serveHTTP(serving: options) { request in self.respond(to: request) }
        served.catch { error in self.stopping.reject(error) }  // nothing can be accepted any more
        let watches = try [SIGTERM, SIGINT].map { signal in
            try EventLoop.current.onSignal(signal) { self.stop() }
        }
        return stopped.then { self.leave() }.ensure { watches.forEach { $0.cancel() } }
    }

    /// Ends `run`, as a signal does.
    package func stop() { stopping.fulfill() }

    /// Lame duck: says that it is not ready, serves for some time as before, and then drains.
    private func leave() -> Promise<DrainResult> {
        isReady = false
        _ = try? ServiceManager.notify(.stopping)
        return after(settings.lameDuck).then { self.listener.drain(deadline: self.settings.drain) }
    }

    private func respond(to request: Request) -> Response {
        switch request.path {
        case "/": Response("Hello, world!\n")
        case "/health/live": Response("alive\n")
        case "/health/ready" where isReady: Response("ready\n")
        case "/health/ready": Response("leaving\n", status: .serviceUnavailable)
        default: .problem(.notFound)
        }
    }
}
