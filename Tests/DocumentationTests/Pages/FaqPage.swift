// Made by .ci/snippets.py from docs/guides/faq.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/faq.md: `serve` with a `switch`
extension Snippets {
    static func faq1() throws {
        func converse(_ connection: Connection) -> Promise<Void> {
            connection.forEachLine(limit: 1024) { line -> Promise<Void> in
                switch line {
                case "PING": connection.write("PONG\n")
                case "WAIT": after(.seconds(1)).then { connection.write("DONE\n") }
                case "QUIT": connection.write("BYE\n").done { throw StopReading() }
                default: connection.write("PARDON?\n")
                }
            }
        }
    }
}
