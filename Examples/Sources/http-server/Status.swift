/// The result of a request. Thrown where a request is refused; its connection then ends with the answer.
enum Status: Error {
    case ok
    case badRequest, notFound, methodNotAllowed, requestTimeout, contentTooLarge, targetTooLong, expectationFailed
    case fieldsTooLarge
    case notImplemented, versionNotSupported

    /// The first line of the answer.
    var line: StaticString {
        switch self {
        case .ok: "HTTP/1.1 200 OK\r\n"
        case .badRequest: "HTTP/1.1 400 Bad Request\r\n"
        case .notFound: "HTTP/1.1 404 Not Found\r\n"
        case .methodNotAllowed: "HTTP/1.1 405 Method Not Allowed\r\n"
        case .requestTimeout: "HTTP/1.1 408 Request Timeout\r\n"
        case .contentTooLarge: "HTTP/1.1 413 Content Too Large\r\n"
        case .targetTooLong: "HTTP/1.1 414 URI Too Long\r\n"
        case .expectationFailed: "HTTP/1.1 417 Expectation Failed\r\n"
        case .fieldsTooLarge: "HTTP/1.1 431 Request Header Fields Too Large\r\n"
        case .notImplemented: "HTTP/1.1 501 Not Implemented\r\n"
        case .versionNotSupported: "HTTP/1.1 505 HTTP Version Not Supported\r\n"
        }
    }
}
