// Made by .ci/snippets.py from docs/guides/files.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/files.md: Files
extension Snippets {
    static func files1() throws {
        let path = temporaryFolder + "/settings"
        let written = writeFile("colour=blue\n", to: path, .atomically)
        let bytes = try hang(written.then { readFile(path, limit: 1 << 20) })
        assert(bytes == Array("colour=blue\n".utf8))
        _ = path
        _ = written
        _ = bytes
    }
}
