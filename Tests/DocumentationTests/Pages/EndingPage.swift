// Made by .ci/snippets.py from docs/reference/ending.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/reference/ending.md: When the peer has gone
extension Snippets {
    static func ending1() throws {
        let (here, there) = try Connection.pair()
        let report = here.cancelWhenPeerGone { after(.seconds(60)).map { "the report" } }.then { here.write($0) }
        there.write("unread").ensure { there.abort() }.cauterize()
        do {
            try hang(report)
        } catch let gone as PeerGone {
            assert(gone == .ended || gone == .failed(SystemError(.receive, ECONNRESET)))
        }
        here.close()
        _ = here
        _ = there
        _ = report
    }
}
