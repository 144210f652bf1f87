@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// One direction from the server to the test: a pair of sockets, since these can be close-on-exec from the start and so
/// never reach another server that is started meanwhile.
final class Pipe {
    private var reader: CInt
    private(set) var writer: CInt
    private var unread: [UInt8] = []

    init() throws {
        var fds: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &fds) == 0 else {
            throw SystemError(.socket, errno, detail: "socketpair")
        }
        (reader, writer) = (fds[0], fds[1])
    }

    deinit {
        closeReader()
        closeWriter()
    }

    func closeReader() {
        if reader >= 0 { close(reader) }
        reader = -1
    }

    func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }

    /// Returns true if there was more before the end.
    private func readMore() throws -> Bool {
        if reader < 0 { return false }
        var entry = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, 10_000) == 1 else { throw Failure(description: "the server is silent") }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(reader, &buffer, buffer.count)
        if count > 0 { unread += buffer[..<count] }
        return count > 0
    }

    /// The number of bytes in the kernel's buffer.
    var unreadBytes: Int {
        var count: CInt = 0
        return ioctl(reader, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    var hasMore: Bool {
        var entry = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
        return !unread.isEmpty || poll(&entry, 1, 0) == 1
    }

    func readLine() throws -> String {
        while true {
            if let end = unread.firstIndex(of: 0x0A) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            guard try readMore() else { throw Failure(description: "the server has ended") }
        }
    }

    func readToEnd() throws -> String {
        while try readMore() {}
        return String(decoding: unread, as: UTF8.self)
    }
}
