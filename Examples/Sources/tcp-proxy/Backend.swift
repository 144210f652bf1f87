import Glibc
import Promises
import Reactor

/// A server behind the proxy.
final class Backend {
    /// `HOST:PORT`.
    let address: String
    /// Connections of clients that are open or being opened.
    var connections = 0
    private(set) var isUp = true
    /// Results in a row that contradict `isUp`.
    private var streak = 0
    var isBeingChecked = false

    init(_ address: String) { self.address = address }

    /// Notes a result. The state changes only after several in a row, so that a single lost packet, or a single success of
    /// a server that is failing, changes nothing.
    func note(_ error: (any Error)?, _ rules: HealthRules) {
        guard (error == nil) != isUp else {
            streak = 0
            return
        }
        streak += 1
        guard streak >= (isUp ? rules.fall : rules.rise) else { return }
        isUp.toggle()
        streak = 0
        log("backend \(address) is \(isUp ? "up" : "down")" + (error.map { ": \($0)" } ?? ""))
    }
}

/// Whether a connect has failed for a reason of this process, which says nothing about the backend.
func isShortageHere(_ error: any Error) -> Bool {
    guard let error = error as? SystemError else { return false }
    return [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, ECANCELED].contains(error.code)
}
