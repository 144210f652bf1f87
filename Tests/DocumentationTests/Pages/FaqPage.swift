// Made by .ci/snippets.py from docs/guides/faq.md; do not edit.
// swift-format-ignore-file
import Foundation
import FoundationNetworking
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

// docs/guides/faq.md: Where is an HTTP client?
extension Snippets {
    static func faq2() throws {
        func load(_ address: String) -> Promise<String> {
            Promise {
                guard let url = URL(string: address) else { throw PromiseError.badInput("no URL: \(address)") }
                let (data, _) = try await URLSession.shared.data(from: url)
                return String(decoding: data, as: UTF8.self)
            }
            .timeout(.seconds(10))                                 // cancels the task, and with it the request
        }
    }
}
