import ReactorLibc
import Reactor

/// A regular file, open for reading. Any thread may read it, since each read gives its offset.
final class OpenFile: Sendable {
    private let calls: FileSyscalls
    private let fd: CInt
    let size: Int
    private let version: FileVersion
    var tag: String { version.tag }
    /// The field `Last-Modified`, if there is a date.
    let date: String?

    enum Found: Sendable {
        /// A regular file, with its content if requested and small.
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

    /// The bytes per read.
    static var piece: Int { 128 << 10 }

    /// True when the file may be read at once. A larger one is sent from the page cache or in pieces. Either
    /// way, code that transforms responses sees a stream.
    private var isSmall: Bool { size <= 32 << 10 }

    private init(_ fd: CInt, _ status: stat, _ calls: FileSyscalls) {
        (self.fd, self.calls) = (fd, calls)
        size = status.st_size
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        version = FileVersion(status, now: now)
        date = version.second.map(httpDate)
    }

    deinit { _ = calls.close(fd) }

    /// Without O_NONBLOCK, opening a FIFO would wait for its writer.
    private static var flags: CInt { O_RDONLY | O_NONBLOCK }

    /// - Parameter readsContent: true to read a small file's bytes at once.
    /// - Throws: a `SystemError` from open(2) or pread(2), except for a missing or forbidden file.
    static func open(_ path: String, readsContent: Bool, _ calls: FileSyscalls) throws -> Found {
        var answer: Int
        repeat { answer = calls.open(path, flags, 0) } while answer == -Int(EINTR)
        if answer < 0 {
            switch CInt(-answer) {
            // The last two mean a socket or a missing device.
            case ENOENT, ENOTDIR, ENAMETOOLONG, ENXIO, ENODEV: return .none
            case EACCES, EPERM, ELOOP: return .refused
            case let code: throw SystemError(.open, code, detail: path)
            }
        }
        let found = Self.found(CInt(answer), calls)
        guard case .file(let file, _) = found, readsContent, file.isSmall else { return found }
        return .file(file, try file.read(0..<file.size))
    }

    private static func found(_ fd: CInt, _ calls: FileSyscalls) -> Found {
        var status = stat()
        let kind = calls.status(fd, &status) == 0 ? status.st_mode & S_IFMT : 0
        if kind == S_IFREG { return .file(OpenFile(fd, status, calls), nil) }
        _ = calls.close(fd)
        return kind == S_IFDIR ? .folder : .none
    }

    /// Reads `range`, or less if the file ends first.
    func read(_ range: Range<Int>) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            var result: Int
            repeat {
                result = calls.readAt(fd, buffer.baseAddress!, range.count, range.lowerBound)
            } while result == -Int(EINTR)
            count = try result.orThrow(.read, "a file that is served")
        }
    }

    // MARK: The page cache

    // For a loop's thread, which must not wait for a disk. A thread pool does the rest.

    /// - Returns: the same as `open` for a regular file; `nil` for others, or if opening needs the disk.
    static func openCached(_ path: String, readsContent: Bool, _ calls: FileSyscalls) -> (OpenFile, [UInt8]?)? {
        let answer = calls.openCached(path, flags)
        guard answer >= 0, case .file(let file, _) = found(CInt(answer), calls) else { return nil }
        guard readsContent, file.isSmall else { return (file, nil) }
        return file.readCached(0..<file.size).map { (file, $0) }
    }

    /// Reads `range` if the page cache has all of it.
    func readCached(_ range: Range<Int>) -> [UInt8]? {
        if range.isEmpty { return [] }
        let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            count = max(calls.readCached(fd, buffer.baseAddress!, range.count, range.lowerBound), 0)
        }
        return bytes.count == range.count ? bytes : nil
    }

    /// Sends as much of `range` from the page cache as the output takes without waiting.
    /// - Returns: the number of bytes sent.
    func send(_ range: Range<Int>, to output: BodyOutput) -> Int {
        guard output.sendsFiles else { return 0 }
        var rest = range
        // At most 4 MiB at once, since other connections wait.
        while !rest.isEmpty, range.count - rest.count < 4 << 20 {
            let part = rest.prefix(1 << 20)
            guard isCached(part) else { break }
            let sent = output.send(part, of: fd)
            rest = rest.dropFirst(sent)
            if sent < part.count { break }
        }
        return range.count - rest.count
    }

    /// True when the page cache probably has `range`. The kernel reads ahead in pieces of this size, so testing each
    /// piece's last byte is enough.
    private func isCached(_ range: Range<Int>) -> Bool {
        var byte: UInt8 = 0
        return stride(from: range.upperBound - 1, through: range.lowerBound, by: -Self.piece).allSatisfy {
            calls.readCached(fd, &byte, 1, $0) == 1
        }
    }

    // MARK: Conditions

    /// True when the client's preconditions hold: RFC 9110, section 13.2.2, steps 1 and 2.
    func isExpected(by headers: Headers) -> Bool {
        if let isListed = isListed(in: "if-match", of: headers, weakly: false) { return isListed }
        // Ignores an invalid date, and any date for a file without one.
        guard let latest = headers["if-unmodified-since"].flatMap(second(ofHTTPDate:)), let second = version.second
        else { return true }
        return second <= latest
    }

    /// True when the client's copy is current: RFC 9110, section 13.2.2, steps 3 and 4. Compares dates as text, because
    /// clients return the received text.
    func isCurrent(for headers: Headers) -> Bool {
        isListed(in: "if-none-match", of: headers, weakly: true)
            ?? (date != nil && headers["if-modified-since"] == date)
    }

    /// True when the tag is in a field's lists; `nil` without the field. Our tags contain no comma or blank.
    private func isListed(in field: String, of headers: Headers, weakly: Bool) -> Bool? {
        let lists = headers.all(field)
        if lists.isEmpty { return nil }
        let tag = version.isStrong ? tag[...] : tag.dropFirst(2)
        let weak = "W/\(tag)"
        return lists.contains { list in
            list.utf8.split { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") || $0 == 0x09 }.contains { element in
                element.elementsEqual("*".utf8) || element.elementsEqual(tag.utf8) && (weakly || version.isStrong)
                    || weakly && element.elementsEqual(weak.utf8)
            }
        }
    }

    /// Parses the requested range: RFC 9110, section 14.2. Several ranges, or an invalid one, mean the whole file.
    func range(for headers: Headers) -> Requested {
        guard let text = headers["range"], text.hasPrefix("bytes=") else { return .whole }
        if let condition = headers["if-range"], condition != date, condition != tag || !version.isStrong {
            return .whole
        }
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
