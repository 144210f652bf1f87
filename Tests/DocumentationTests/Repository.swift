import Glibc
import Testing

/// The files of the package that this test was built from.
enum Repository {
    /// Without a trailing slash.
    static let root: String = {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(3).joined(separator: "/")
    }()

    /// - Parameter path: relative to the root.
    static func text(of path: String) throws -> String { try text(ofFile: "\(root)/\(path)") }

    static func text(ofFile path: String) throws -> String {
        let file = try #require(fopen(path, "r"), "\(path) cannot be opened")
        defer { fclose(file) }
        return String(decoding: bytes(of: file), as: UTF8.self)
    }

    static func lines(of path: String) throws -> [Substring] {
        try text(of: path).split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The files of a folder, by their paths from the root.
    static func files(in folder: String) throws -> [String] {
        try names(in: "\(root)/\(folder)").map { "\(folder)/\($0)" }
    }

    /// The names in any folder, sorted, except those that begin with a dot.
    static func names(in folder: String) throws -> [String] {
        let directory = try #require(opendir(folder), "\(folder) cannot be opened")
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    static func absolute(_ paths: [String]) -> [String] { paths.map { "\(root)/\($0)" } }

    /// The rest of the file.
    static func bytes(of file: UnsafeMutablePointer<FILE>) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65536)
        while case let count = fread(&part, 1, part.count, file), count > 0 { bytes += part[..<count] }
        return bytes
    }
}
