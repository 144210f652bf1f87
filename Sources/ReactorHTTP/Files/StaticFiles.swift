import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// Serves the files of a folder.
///
/// ```swift
/// let files = StaticFiles("/srv/www")
/// listener.serveHTTP { request in files.response(to: request) }
/// ```
///
/// Supports GET and HEAD, `ETag` and `Last-Modified` with their conditions, and single ranges (RFC 9110, sections 13
/// and 14). The tag depends on size, inode, and the times of the last modification and status change, so a replaced
/// file is never taken for current, whatever its modification time. `Last-Modified` is the later of the two times.
/// Where these prove too little, the tag is weak and `Last-Modified` is omitted: for two seconds after a change, and
/// for a modification time of 0 or 1, as in reproducible builds.
///
/// Names that begin with a dot, except `/.well-known/` (RFC 8615), and files outside the folder are not served.
/// Symbolic links in the folder are followed.
///
/// The loop sends what is in the page cache, large files with sendfile(2). A thread pool opens the other files and
/// reads them in pieces, at the client's pace. (On a network file system, the loop may wait while the file server opens
/// a file.)
public struct StaticFiles: Sendable {
    private let folder: String
    private let index: String
    private let headers: Headers
    private let pool: ThreadPool
    private let calls: FileSyscalls

    /// - Parameters:
    ///   - folder: the folder's path.
    ///   - index: the file served for a folder.
    ///   - headers: further fields of each response with a file, such as `Cache-Control`. `ETag` and `Last-Modified`
    ///     come from the file.
    ///   - pool: the reading threads.
    public init(
        _ folder: String, index: String = "index.html", headers: Headers = Headers(), on pool: ThreadPool = .shared
    ) { self.init(folder, index: index, headers: headers, on: pool, calls: .real) }

    package init(_ folder: String, index: String, headers: Headers, on pool: ThreadPool, calls: FileSyscalls) {
        (self.folder, self.index, self.headers, self.pool, self.calls) = (folder, index, headers, pool, calls)
    }

    /// Responds with the requested file: 404 if it does not exist, 403 if it may not be read.
    ///
    /// ```swift
    /// // The files below a prefix.
    /// case let path where path.hasPrefix("/files/"): files.response(to: request, path: String(path.dropFirst(6)))
    /// ```
    ///
    /// A folder's path without a final slash is redirected to the path with one, keeping the query, since relative
    /// links in the index would lead elsewhere.
    /// - Parameters:
    ///   - request: the request.
    ///   - path: the path below the folder, with URI escapes, with or without a leading slash; `nil` for the request's
    ///     own.
    /// - Returns: a promise that is rejected with a `SystemError` if the file cannot be opened or read for another
    ///   reason, or with `DispatchError` if the pool refuses a job.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func response(to request: Request, path: String? = nil) -> Promise<Response> {
        guard request.method == .get || request.method == .head else {
            return .value(Response(.methodNotAllowed, headers: ["Allow": "GET, HEAD"]))
        }
        let path = path ?? request.path
        guard let name = Self.fileName(path) else { return .value(Response(.notFound)) }
        let (full, isIndex) = ("\(folder)/\(name)", path.utf8.last == UInt8(ascii: "/"))
        // If the request's own path ends with a slash, a folder means its index, whatever `path` is.
        let mayBeIndex = isIndex || request.path.utf8.last == UInt8(ascii: "/")
        // Most files are small and sent whole, with one pool job and one send call.
        let conditions = ["range", "if-match", "if-unmodified-since", "if-none-match", "if-modified-since"]
        let isWhole = request.method == .get && !conditions.contains { request.headers.has($0) }
        let cached = isIndex ? "\(full)/\(index)" : full
        if let (file, content) = OpenFile.openCached(cached, readsContent: isWhole, calls) {
            return .value(respond(to: request, with: file, content, contentType(of: cached)))
        }
        return Promise(on: pool) { [index, calls] in
            let found = isIndex ? .folder : try OpenFile.open(full, readsContent: isWhole, calls)
            guard case .folder = found, mayBeIndex else { return (found, full) }
            let file = "\(full)/\(index)"
            let foundIndex = try OpenFile.open(file, readsContent: isWhole, calls)
            if case .folder = foundIndex { return (.none, file) }
            return (foundIndex, file)
        }.map { (found: OpenFile.Found, full: String) in
            switch found {
            case .none: Response(.notFound)
            case .refused: Response(.forbidden)
            case .folder: .redirect(to: Self.withSlash(request), status: Status(301))
            case .file(let file, let content): respond(to: request, with: file, content, contentType(of: full))
            }
        }
    }

    /// Returns the request's path with a final slash, and its query. Two leading slashes would begin a host name;
    /// browsers treat backslashes as slashes.
    private static func withSlash(_ request: Request) -> String {
        let path = request.path.utf8.drop { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return "/\(Substring(path))/" + (request.query.map { "?\($0)" } ?? "")
    }

    /// Decodes the file name; `nil` if it is not served.
    private static func fileName(_ path: String) -> String? {
        guard let bytes = unescaped(path[...].utf8), !bytes.contains(0) else { return nil }
        let segments = bytes.split(separator: UInt8(ascii: "/"))
        let isHidden = { (segment: ArraySlice<UInt8>) in segment.first == UInt8(ascii: ".") }
        let isWellKnown = segments.first?.elementsEqual(".well-known".utf8) == true
        if segments.dropFirst(isWellKnown ? 1 : 0).contains(where: isHidden) { return nil }
        return String(validating: bytes.drop { $0 == UInt8(ascii: "/") }, as: UTF8.self)
    }

    private func respond(to request: Request, with file: OpenFile, _ content: [UInt8]?, _ type: String) -> Response {
        var headers = headers
        headers["ETag"] = file.tag
        if let date = file.date { headers["Last-Modified"] = date }
        if !headers.has("accept-ranges") { headers["Accept-Ranges"] = "bytes" }
        if let content { return Response(content, type: type, headers: headers) }
        if !file.isExpected(by: request.headers) { return Response(Status(412)) }
        if file.isCurrent(for: request.headers) { return Response(.notModified, headers: headers) }
        var (status, range) = (Status.ok, 0..<file.size)
        // Only GET has ranges: RFC 9110, section 14.2.
        switch request.method == .get ? file.range(for: request.headers) : .whole {
        case .whole: break
        case .part(let part):
            (status, range) = (Status(206), part)
            headers["Content-Range"] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(file.size)"
        case .outside: return Response(Status(416), headers: ["Content-Range": "bytes */\(file.size)"])
        }
        return .stream(status: status, type: type, headers: headers, length: range.count) { [range] output in
            send(range, of: file, to: output)
        }
    }

    /// Sends as much as the socket has room for, then a piece whose write waits for room. So each client has at most
    /// one piece in memory.
    private func send(_ range: Range<Int>, of file: OpenFile, to output: BodyOutput) -> Promise<Void> {
        let sent = file.send(range, to: output)
        let rest = range.dropFirst(sent)
        if rest.isEmpty { return .value }
        return piece(rest.prefix(sent > 0 ? 16 << 10 : OpenFile.piece), of: file).then { bytes -> Promise<Void> in
            // The file has shrunk; closing the connection tells the client.
            if bytes.isEmpty { throw BodyError.endedEarly }
            return output.write(bytes).then { send(rest.dropFirst(bytes.count), of: file, to: output) }
        }
    }

    private func piece(_ range: Range<Int>, of file: OpenFile) -> Promise<[UInt8]> {
        if let bytes = file.readCached(range) { return .value(bytes) }
        return Promise(on: pool) { try file.read(range) }
    }
}

private func contentType(of path: String) -> String {
    let name = path.utf8.split(separator: UInt8(ascii: "/")).last ?? path.utf8[...]
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return "application/octet-stream" }
    let end = Substring(name[dot...].dropFirst()).lowercased()
    return contentTypes[end] ?? "application/octet-stream"
}

private let contentTypes = [
    "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
    "txt": "text/plain; charset=utf-8", "md": "text/plain; charset=utf-8", "csv": "text/csv; charset=utf-8",
    "json": "application/json", "map": "application/json", "xml": "application/xml", "svg": "image/svg+xml",
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "avif": "image/avif", "ico": "image/x-icon", "woff2": "font/woff2", "woff": "font/woff", "pdf": "application/pdf",
    "wasm": "application/wasm", "mp3": "audio/mpeg", "mp4": "video/mp4", "webm": "video/webm",
]
