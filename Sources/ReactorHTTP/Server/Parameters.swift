import Promises
import ReactorIO

/// The decoded parameters of a path, query or form, in order. Names are compared by bytes.
public struct Parameters: Hashable, Sendable {
    private struct Field: Hashable {
        let name: String
        let value: String
    }

    private var fields: [Field] = []
    private let refusal: Status

    init(refusal: Status = .badRequest) { self.refusal = refusal }

    /// Decodes an HTML form's `a=1&b=two+words`: `+` is a space, and an invalid escape stays. Bytes that are not UTF-8
    /// are replaced.
    init(form text: some Collection<UInt8>) {
        self.init()
        if text.withContiguousStorageIfAvailable({ append(form: Bytes($0)) }) == nil {
            Array(text).withUnsafeBytes { append(form: $0) }
        }
    }

    private mutating func append(form text: Bytes) {
        var start = 0
        while start < text.count {
            let end = text.position(of: UInt8(ascii: "&"), from: start) ?? text.count
            let pair = text.slice(start..<end)
            start = end + 1
            if pair.isEmpty { continue }
            let middle = pair.position(of: UInt8(ascii: "=")) ?? pair.count
            append(
                Self.decoded(pair.slice(0..<middle)), Self.decoded(pair.slice(min(middle + 1, pair.count)..<pair.count))
            )
        }
    }

    mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    private static func decoded(_ text: Bytes) -> String {
        String(decoding: unescaped(text, isForm: true) ?? [], as: UTF8.self)
    }

    /// The first value of this name, if any.
    public subscript(name: String) -> String? { all(name).first }

    /// All values of this name.
    public func all(_ name: String) -> [String] {
        fields.filter { $0.name.utf8.elementsEqual(name.utf8) }.map(\.value)
    }

    /// The first value of this name, converted, for instance to a number.
    ///
    /// ```swift
    /// let page = try request.queryParameters.value("page", as: Int.self)
    /// ```
    /// - Throws: `HTTPError` if the value is missing or cannot be converted: 404 for a path parameter, otherwise 400,
    ///   with a sentence for the client.
    public func value<Value: LosslessStringConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(HTTPError) -> Value {
        guard let text = self[name] else { throw HTTPError(refusal, detail: "The parameter \(name) is missing.") }
        if let value = Value(text) { return value }
        let wanted =
            type is any FixedWidthInteger.Type
            ? "a whole number" : type is any BinaryFloatingPoint.Type ? "a number" : "valid"
        throw HTTPError(refusal, detail: "The parameter \(name) is not \(wanted).")
    }

    /// The first value of this name, converted, or `value` if there is none.
    ///
    /// ```swift
    /// let page = try request.queryParameters.value("page", default: 1)
    /// ```
    /// - Throws: the same `HTTPError` as `value(_:as:)` if the value cannot be converted.
    public func value<Value: LosslessStringConvertible>(
        _ name: String, default value: @autoclosure () -> Value
    ) throws(HTTPError) -> Value {
        self[name] == nil ? value() : try self.value(name)
    }
}

extension Request {
    /// The path parameters that a `Router` matched, unescaped.
    public var pathParameters: Parameters { storage.notes?.parameters ?? Parameters(refusal: .notFound) }

    /// The parameters of the query: `?page=2&word=two+words`.
    public var queryParameters: Parameters { Parameters(form: (query ?? "").utf8) }

    /// Reads the parameters of a form, `application/x-www-form-urlencoded`, from the body.
    /// - Returns: a promise with the same errors as `Body.bytes`, or `HTTPError` (415) for another type.
    public func formParameters() -> Promise<Parameters> {
        guard headers.has("content-type", listing: "application/x-www-form-urlencoded") else {
            return Promise(error: HTTPError(Status(415), detail: "The body is no application/x-www-form-urlencoded."))
        }
        return body.bytes().map { Parameters(form: $0) }
    }
}
