import Glibc

/// A folder of one test, removed with all that is in it when this object is released.
package final class Folder: Sendable {
    package let path: String

    package init() {
        // mkdtemp(3) replaces the last six letters.
        var template = Array("/tmp/reactor-tests-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let made = mkdtemp(buffer.baseAddress!) else { fatalError("no folder for a test: errno \(errno)") }
            return String(cString: made)
        }
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        if unlink(path) == 0 { return }
        for name in names(in: path) { remove("\(path)/\(name)") }
        rmdir(path)
    }

    package static func / (folder: Folder, name: String) -> String { "\(folder.path)/\(name)" }

    package subscript(name: String) -> String { self / name }

    package func has(_ name: String) -> Bool { access(self / name, F_OK) == 0 }

    /// The names in it, sorted.
    package var names: [String] { Self.names(in: path) }

    package static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

/// The text that one read finds.
package func text(from fd: CInt) -> String {
    let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        count = max(read(fd, buffer.baseAddress!, buffer.count), 0)
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// The text of a small file, as those of /proc are.
package func text(ofFile path: String) -> String {
    let fd = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(fd) }
    return text(from: fd)
}
