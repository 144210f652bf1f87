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
    /// Consecutive results that contradict `isUp`.
    private var streak = 0
    var isBeingChecked = false

    init(_ address: String) { self.address = address }

    /// Records a result. The state changes only after several consecutive ones, so that neither a single lost packet
    /// nor a single success of a failing server changes it.
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

/// `true` if a connect failed for a local reason, which says nothing about the backend.
func isShortageHere(_ error: any Error) -> Bool {
    guard let error = error as? SystemError else { return false }
    return [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, ECANCELED].contains(error.code)
}
