import Reactor

/// The settings of the service, by the names of its environment.
package struct Settings {
    /// LISTEN: where the service listens, unless systemd passes a socket.
    package var address: SocketAddress
    /// LAME_DUCK: the seconds from the signal to the drain, in which balancers notice that the service is not ready.
    package var lameDuck: Duration
    /// DRAIN: the seconds that requests in progress have afterwards.
    package var drain: Duration

    /// - Parameter value: the value of a variable of the environment.
    /// - Throws: `InvalidSetting`. A misspelled value must not become a default.
    package init(_ value: (_ name: String) -> String?) throws(InvalidSetting) {
        func seconds(_ name: String, or standard: Double) throws(InvalidSetting) -> Duration {
            guard let text = value(name) else { return .seconds(standard) }
            guard let seconds = Double(text), 0...3600 ~= seconds else {
                throw InvalidSetting(description: "\(name): '\(text)' is not a number of seconds from 0 to 3600")
            }
            return .seconds(seconds)
        }
        let listen = value("LISTEN") ?? "127.0.0.1:8080"
        do { address = try SocketAddress(listen) } catch { throw InvalidSetting(description: "LISTEN: \(error)") }
        lameDuck = try seconds("LAME_DUCK", or: 5)
        drain = try seconds("DRAIN", or: 10)
    }
}

package struct InvalidSetting: Error, CustomStringConvertible {
    package let description: String
}
