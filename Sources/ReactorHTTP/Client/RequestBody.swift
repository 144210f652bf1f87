import Promises
import ReactorIO

/// A client request's body.
public struct RequestBody {
    /// The field `Content-Type`, if the request's headers have none; `nil` to omit it.
    public var contentType: String?
    let content: Content

    /// A body from an array.
    public static func bytes(_ bytes: [UInt8], type: String? = "application/octet-stream") -> RequestBody {
        RequestBody(contentType: type, content: .bytes(bytes))
    }

    /// A body from a string's UTF-8.
    public static func text(_ text: String, type: String? = "text/plain; charset=utf-8") -> RequestBody {
        RequestBody(contentType: type, content: .text(text))
    }

    /// A body written while it is being sent.
    ///
    /// ```swift
    /// client.fetch("http://127.0.0.1:8080/log", .put, body: .stream { output in lines.forEach { output.write($0) } })
    /// ```
    ///
    /// `body` is called once, so the request is not retried on another connection, and a redirect that needs the body
    /// again becomes the response. If the promise from `body` is rejected, the connection closes, and the fetch is
    /// rejected with the error. The promise is cancelled if the response ends first.
    /// - Parameters:
    ///   - type: the field `Content-Type`.
    ///   - length: the body's length in bytes; `nil` for chunks.
    ///   - body: writes the body. Wait for each write's promise to keep the server's pace.
    public static func stream(
        type: String? = "application/octet-stream", length: Int? = nil,
        _ body: @escaping (BodyOutput) throws -> Promise<Void>
    ) -> RequestBody { RequestBody(contentType: type, content: .stream(length: length, body)) }

    var isStream: Bool { if case .stream = content { true } else { false } }
}
