// Made by .ci/snippets.py from docs/coming-from/swiftnio.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/coming-from/swiftnio.md: Coming from SwiftNIO
extension Snippets {
    static func swiftnio1() throws {
        let listener = try Listener.bind("127.0.0.1:7000")
        let served = listener.serve(.untilStopped) { connection in
            connection.forEachLine { line in connection.write(line.uppercased() + "\n") }
        }
        try hang(served)
        _ = listener
        _ = served
    }
}
