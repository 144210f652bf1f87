import Promises
import ReactorIO

extension Response {
    /// Makes an error response for API clients: `application/problem+json` (RFC 9457), such as `{"title":"Not
    /// Found","status":404,"detail":"There is no note 7."}`.
    /// - Parameters:
    ///   - status: the status.
    ///   - detail: a sentence for the reader; `nil` for none.
    ///   - headers: further fields.
    public static func problem(_ status: Status, _ detail: String? = nil, headers: Headers = Headers()) -> Response {
        var json = "{"
        if !status.reason.isEmpty { json += "\"title\":\(quoted(status.reason))," }
        json += "\"status\":\(status.code)"
        if let detail { json += ",\"detail\":\(quoted(detail))" }
        return Response(json + "}", status: status, type: "application/problem+json", headers: headers)
    }

    /// A JSON string: RFC 8259, section 7.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted.unicodeScalars += ["\\", scalar]
            case "\0"..<" ": quoted += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
