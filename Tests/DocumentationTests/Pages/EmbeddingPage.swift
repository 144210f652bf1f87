// Made by .ci/snippets.py from docs/guides/embedding.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/embedding.md: Your loop drives this one
extension Snippets {
    static func embedding1() throws {
        func turnAll(_ loop: EventLoop) throws(SystemError) {
            repeat { try loop.turn(.poll) } while loop.isReady
        }
    }
}

// docs/guides/embedding.md: poll(2)
extension Snippets {
    static func embedding2() throws {
        try EventLoop.withLoop { loop in
            var isDone = false
            after(.milliseconds(2)).done { isDone = true }
            var entries = [pollfd(fd: try loop.fileDescriptor, events: Int16(POLLIN), revents: 0)]  // and those of yours
            try turnAll(loop)
            while !isDone {
                poll(&entries, nfds_t(entries.count), -1)
                if entries[0].revents != 0 { try turnAll(loop) }
            }
            assert(isDone)
        }
    }
}

// docs/guides/embedding.md: This loop drives yours
extension Snippets {
    static func embedding3() throws {
        let outer = EventLoop.current
        try EventLoop.withLoop { inner in                      // stands for a loop of another library
            var isHeard = false
            let timer = inner.schedule(after: .milliseconds(2)) { isHeard = true }
            let carrier = try outer.watch(try inner.fileDescriptor, for: .reading) { _ in try? turnAll(inner) }
            try turnAll(inner)
            try outer.run(until: { isHeard })
            assert(!timer.isActive)
            carrier.cancel()
        }
        _ = outer
    }
}
