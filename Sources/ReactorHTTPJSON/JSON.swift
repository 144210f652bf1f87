public import FoundationEssentials
public import Promises
public import ReactorHTTP

extension Fetched {
    /// Decodes the JSON body of a successful response.
    ///
    /// ```swift
    /// fetch("http://127.0.0.1:8080/users/1").then { try $0.json(User.self) }
    /// ```
    /// - Parameters:
    ///   - type: the value's type.
    ///   - decoder: the decoder.
    /// - Returns: a promise of the value, with the same errors as `Body.read`, or a `DecodingError` from `decoder`.
    /// - Throws: the same `HTTPError` as `validated`.
    public func json<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(HTTPError) -> Promise<Value> {
        try validated().body.bytes().map { try decoder.decode(type, from: Data($0)) }
    }
}

extension Request {
    /// Decodes the JSON body.
    /// - Parameters:
    ///   - type: the value's type.
    ///   - decoder: the decoder.
    /// - Returns: a promise of the value, with the same errors as `Body.read`, or `HTTPError` (400) if `decoder`
    ///   throws; its sentence for the client names the missing or wrong member.
    public func json<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) -> Promise<Value> {
        body.bytes().map { bytes in
            do { return try decoder.decode(type, from: Data(bytes)) } catch let error as DecodingError {
                throw HTTPError(.badRequest, detail: error.sentence)
            } catch { throw HTTPError(.badRequest, "\(error)") }
        }
    }
}

extension RequestBody {
    /// Encodes a value as JSON, with `Content-Type: application/json`.
    /// - Throws: an `EncodingError` from `encoder`.
    public static func json(_ value: some Encodable, encoder: JSONEncoder = JSONEncoder()) throws -> RequestBody {
        .bytes([UInt8](try encoder.encode(value)), type: "application/json")
    }
}

extension Response {
    /// Encodes a value as JSON, with `Content-Type: application/json`.
    /// - Throws: an `EncodingError` from `encoder`.
    public static func json(
        _ value: some Encodable, status: Status = .ok, headers: Headers = Headers(),
        encoder: JSONEncoder = JSONEncoder()
    ) throws -> Response {
        Response([UInt8](try encoder.encode(value)), status: status, type: "application/json", headers: headers)
    }
}

extension DecodingError {
    /// The fault, for the body's sender.
    fileprivate var sentence: String {
        func name(_ path: [any CodingKey]) -> String {
            let path = path.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
            return path.isEmpty ? "The body" : "The member \(path.hasPrefix(".") ? path.dropFirst() : path[...])"
        }
        switch self {
        case .keyNotFound(let key, let context): return "\(name(context.codingPath + [key])) is missing."
        case .valueNotFound(_, let context): return "\(name(context.codingPath)) is null or missing."
        case .typeMismatch(_, let context): return "\(name(context.codingPath)) has the wrong type."
        case .dataCorrupted(let context) where context.codingPath.isEmpty: return "The body is not valid JSON."
        case .dataCorrupted(let context): return "\(name(context.codingPath)) is not valid."
        @unknown default: return "The body is not as expected."
        }
    }
}
