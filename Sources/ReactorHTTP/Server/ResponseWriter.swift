import Promises
import ReactorIO

// A field that both library and program set is written once: RFC 9110, section 5.3.

extension LoopState {
    /// - Parameters:
    ///   - request: `nil` if it could not be parsed.
    ///   - isLast: true if the connection ends after the response.
    func appendHead(
        of response: Response, to request: RequestStorage?, isLast: Bool, _ output: inout ByteWriter
    ) {
        var length = response.content.length
        if let length, !isLast, response.headers.isEmpty, request?.isHTTP10 == false, !response.status.hasNoBody {
            return appendHead(response.status, response.ownType, length: length, &output)
        }
        if response.headers.isEmpty {
            output.append(beginning(response.status, response.ownType))
            if case .upgrade(let name, _) = response.content {
                output.append("Connection: Upgrade\r\n" as StaticString)
                output.append(upgrade: name)
            } else if isLast {
                output.append("Connection: close\r\n" as StaticString)
            } else if request?.isHTTP10 == true {
                output.append("Connection: keep-alive\r\n" as StaticString)
            }
        } else {
            appendFields(of: response, request?.isHTTP10 == true, isLast, &output)
            if length == 0, request?.method == .head { length = response.headers.contentLength ?? 0 }
        }
        if response.status.hasNoBody || length == nil && request?.isHTTP10 == true {
            output.append("\r\n" as StaticString)
        } else {
            output.append(framing: length)
        }
    }

    private func appendFields(of response: Response, _ isHTTP10: Bool, _ isLast: Bool, _ output: inout ByteWriter) {
        let headers = response.headers
        let type = response.contentType
        if headers.has("date") {
            output.append(Self.beginning(response.status, type, date: []))
        } else {
            output.append(beginning(response.status, type))
        }
        var own: [StaticString] = ["content-type", "content-length", "transfer-encoding", "connection"]
        var upgrade: String?
        if case .upgrade(let name, _) = response.content {
            own.append("upgrade")
            upgrade = name
        }
        output.append(headers, without: own)
        let options = headers.connectionOptions(
            isUpgrade: upgrade != nil, isLast ? "close" : isHTTP10 && upgrade == nil ? "keep-alive" : nil)
        if !options.isEmpty {
            output.append("Connection: " as StaticString)
            output.append(value: options.joined(separator: ", "))
            output.append("\r\n" as StaticString)
        }
        if let upgrade { output.append(upgrade: upgrade) }
    }
}

extension Headers {
    /// Returns the elements of `Connection` for a response with these fields. A sender of `Upgrade` must name it there:
    /// RFC 9110, section 7.8.
    /// - Parameter decision: the library's `close` or `keep-alive`.
    fileprivate func connectionOptions(isUpgrade: Bool, _ decision: String?) -> [String] {
        var options: [String] = isUpgrade ? ["Upgrade"] : []
        forEach(named: "connection") { range in
            lines.withUnsafeBytes { bytes in
                bytes.slice(range).forEachElement { option in
                    let isOfLibrary =
                        option.isEmpty || option.isEqual(ignoringCase: "close")
                        || option.isEqual(ignoringCase: "keep-alive")
                    if isOfLibrary || isUpgrade && option.isEqual(ignoringCase: "upgrade") { return }
                    options.append(option.text)
                }
            }
            return true
        }
        if !isUpgrade, has("upgrade"), !has("connection", listing: "upgrade") { options.append("upgrade") }
        if let decision { options.append(decision) }
        return options
    }

    /// The program's `Content-Length`; `nil` if it is not a number.
    fileprivate var contentLength: Int? {
        guard let bytes = bytes("content-length"), bytes.allSatisfy(isDigit) else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self))
    }
}

extension ByteWriter {
    fileprivate mutating func append(upgrade name: String) {
        append("Upgrade: " as StaticString)
        append(value: name)
        append("\r\n" as StaticString)
    }
}
