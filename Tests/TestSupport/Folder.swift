import Glibc

/// A folder of one test, removed with its files when this object is released.
package final class Folder {
    package let path: String

    package init() {
        // mkdtemp(3) replaces the last six letters.
        var template = Array("/tmp/reactor-tests-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let made = mkdtemp(buffer.baseAddress!) else { fatalError("no folder for a test: errno \(errno)") }
            return String(cString: made)
        }
    }

    deinit {
        for name in names { unlink(self / name) }
        rmdir(path)
    }

    package static func / (folder: Folder, name: String) -> String { "\(folder.path)/\(name)" }

    package subscript(name: String) -> String { self / name }

    package func has(_ name: String) -> Bool { access(self / name, F_OK) == 0 }

    /// The names in it, sorted.
    package var names: [String] {
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
