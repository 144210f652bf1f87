import Glibc
import Promises
import Reactor
import ReactorIO

@main
enum DeployedService {
    static func main() {
        do {
            let settings = try Settings { name in getenv(name).map { String(cString: $0) } }
            let service = try Service(settings)
            let ended = try service.run()
            log("listening on \(service.listener.localAddress)")
            try ServiceManager.notify(.ready)
            if let interval = ServiceManager.watchdogInterval {
                EventLoop.current.schedule(every: interval / 2) { _ = try? ServiceManager.notify(.watchdog) }.unref()
            }
            let result = try hang(ended)
            log("ended: idle \(result.idle), finished \(result.finished), aborted \(result.aborted)")
            exit(result.aborted == 0 ? EXIT_SUCCESS : EXIT_FAILURE)
        } catch {
            log("\(error)")
            exit(error is InvalidSetting ? EX_CONFIG : EX_OSERR)
        }
    }

    /// Writes a line to standard error, which Docker and systemd keep.
    private static func log(_ text: String) {
        let line = "deployed-service: \(text)\n"
        write(STDERR_FILENO, line, line.utf8.count)
    }
}
