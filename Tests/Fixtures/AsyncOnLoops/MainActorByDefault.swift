import Promises
import Reactor
import ReactorIO

// In a package whose code belongs to the main actor by default, code for other threads must opt out. In other packages
// these annotations change nothing.

/// The state of each loop of a group.
nonisolated final class Lexicon { var words: [String] = [] }

/// Called by closures for other threads.
nonisolated func digits(of text: String) -> Int { text.filter(\.isNumber).count }

/// A value that those closures use.
nonisolated struct Order: Sendable {
    var items: [String] = []
    var count: Int { items.count }
}

/// Code on one loop needs no annotation, including decoders.
struct WordDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> {
        try .reading(bytes) { reader in [UInt8](try reader.bytes(Int(try reader.byte()))) }
    }
}

func onThePool(_ text: String, _ order: Promise<Order>) -> Promise<Int> {
    let counted = Promise(on: .shared) { digits(of: text) }
    return when(fulfilled: counted, order.map(on: .shared) { $0.count }).map { $0 + $1 }
}

func inATask(_ text: String) -> Promise<Int> { Promise { digits(of: text) } }

func posted(to remote: LoopRemote) { remote.submit { print(digits(of: "1")) } }

func serveWords(_ listener: Listener, on group: LoopGroup, _ lexica: LoopLocal<Lexicon>) -> Promise<DrainResult> {
    listener.serve(on: group) { connection in
        connection.forEachLine { line in
            lexica.value(for: connection).words.append(line)
            return connection.write("\(digits(of: line))\n")
        }
    }
}

func serveWords(_ listener: Listener) -> Promise<DrainResult> {
    let lexicon = Lexicon()
    return listener.serve { connection in
        connection.forEachFrame(WordDecoder()) { word, _ in
            lexicon.words.append(String(decoding: word, as: UTF8.self))
            return connection.write("\(lexicon.words.count)\n")
        }
    }
}
