import Glibc
import Reactor

/// A regular file, open for reading. Any thread may read it: each read gives its offset.
final class OpenFile: Sendable {
    private let fd: CInt
    let size: Int
    /// The field `ETag`: it changes with the file's size and modification time.
    let tag: String
    /// The field `Last-Modified`.
    let date: String
    private let seconds: time_t

    enum Found: Sendable {
        /// With its whole content, if that was asked for and is small.
        case file(OpenFile, [UInt8]?)
        case folder
        case none
        case refused
    }

    enum Requested: Equatable {
        case whole
        case part(Range<Int>)
        case outside
    }

    /// The number of bytes per read.
    static var piece: Int { 128 << 10 }

    private init(_ fd: CInt, _ status: stat) {
        self.fd = fd
        size = Int(status.st_size)
        seconds = status.st_mtim.tv_sec
        let nanoseconds = status.st_mtim.tv_nsec
        tag = "\"\(String(size, radix: 16))-\(String(seconds, radix: 16)).\(String(nanoseconds, radix: 16))\""
        date = httpDate(seconds)
    }

    deinit { close(fd) }

    /// - Parameter readsContent: whether to read the bytes of a small file at once.
    /// - Throws: the `SystemError` of open(2) and pread(2), except for a file that does not exist.
    static func open(_ path: String, readsContent: Bool) throws -> Found {
        // O_NONBLOCK: opening a FIFO would wait for its writer.
        var answer: Int
        repeat { answer = FileSyscalls.real.open(path, O_RDONLY | O_NONBLOCK, 0) } while answer == -Int(EINTR)
        if answer < 0 {
            switch CInt(-answer) {
            // The last two: a socket, or a device that does not exist.
            case ENOENT, ENOTDIR, ENAMETOOLONG, ENXIO, ENODEV: return .none
            case EACCES, EPERM, ELOOP: return .refused
            case let code: throw SystemError(.open, code, detail: path)
            }
        }
        let fd = CInt(answer)
        var status = stat()
        guard fstat(fd, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(fd)
            return status.st_mode & S_IFMT == S_IFDIR ? .folder : .none
        }
        let file = OpenFile(fd, status)
        let content = readsContent && file.size <= piece ? try file.read(0..<file.size) : nil
        return .file(file, content)
    }

    /// The bytes in `range`, or fewer if the file ends earlier.
    func read(_ range: Range<Int>) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            while true {
                let result = pread(fd, buffer.baseAddress, range.count, range.lowerBound)
                if result < 0 && errno == EINTR { continue }
                if result < 0 { throw SystemError(.read, errno, detail: "a file that is served") }
                count = result
                return
            }
        }
    }

    /// Whether the client's preconditions hold: RFC 9110, section 13.2.2, steps 1 and 2.
    func isExpected(by headers: Headers) -> Bool {
        if let isListed = isListed(in: "if-match", of: headers, weakly: false) { return isListed }
        // An invalid date is ignored.
        guard let latest = headers["if-unmodified-since"].flatMap(second(ofHTTPDate:)) else { return true }
        return seconds <= latest
    }

    /// Whether the client's copy is current: steps 3 and 4 of the same section. Dates are compared as text: clients
    /// send back the one that they received.
    func isCurrent(for headers: Headers) -> Bool {
        isListed(in: "if-none-match", of: headers, weakly: true) ?? (headers["if-modified-since"] == date)
    }

    /// Whether the tag is in the lists of a field; `nil` without the field. Our tags contain no comma and no blank.
    private func isListed(in field: String, of headers: Headers, weakly: Bool) -> Bool? {
        let lists = headers.all(field)
        if lists.isEmpty { return nil }
        return lists.contains { list in
            list.utf8.split { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") || $0 == 0x09 }.contains { element in
                element.elementsEqual("*".utf8) || element.elementsEqual(tag.utf8)
                    || weakly && element.elementsEqual("W/\(tag)".utf8)
            }
        }
    }

    /// The requested range of the file: RFC 9110, section 14.2. Several ranges, or an invalid one, mean the whole file.
    func range(for headers: Headers) -> Requested {
        guard let text = headers["range"], text.hasPrefix("bytes=") else { return .whole }
        if let condition = headers["if-range"], condition != tag, condition != date { return .whole }
        let bounds = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy(isDigit) }) else { return .whole }
        switch (bounds[0].isEmpty, bounds[1].isEmpty) {
        case (true, true): return .whole
        case (true, false):
            let count = min(Int(bounds[1]) ?? .max, size)
            return count > 0 ? .part(size - count..<size) : .outside
        case (false, let isOpen):
            let first = Int(bounds[0]) ?? .max
            let last = isOpen ? .max : Int(bounds[1]) ?? .max
            if last < first { return .whole }
            return first < size ? .part(first..<min(last, size - 1) + 1) : .outside
        }
    }
}
