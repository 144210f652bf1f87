import Promises
import Reactor
import ReactorIO

/// A client's handshake: RFC 6455, section 4.1.
struct WebSocketRequest {
    let request: OutgoingRequest
    private let protocols: [String]
    private let key: String

    init(
        _ address: String, protocols: [String], _ headers: Headers
    ) throws(FetchError) {
        if headers.contains(where: { $0.name.lowercased().hasPrefix("sec-websocket-") }) {
            throw .badRequest("with a field of the handshake")
        }
        guard Set(protocols).count == protocols.count,
            protocols.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isTokenByte) })
        else { throw .badRequest("the subprotocols \(protocols)") }
        var headers = headers
        headers.remove("connection")
        request = try OutgoingRequest(try WebAddress(address, schemes: ("ws", "wss")), .get, headers, nil)
        self.protocols = protocols
        var random = LoopRandom(.ofCurrentThread)
        key = base64((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    func write(to output: inout ByteWriter, userAgent: [UInt8]) {
        request.writeFields(to: &output, by: nil, userAgent: userAgent)
        output.append("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" as StaticString)
        output.append("Sec-WebSocket-Key: \(key)\r\n")
        if !protocols.isEmpty { output.append("Sec-WebSocket-Protocol: \(protocols.joined(separator: ", "))\r\n") }
        output.append("\r\n" as StaticString)
    }

    /// - Parameter head: the head of a response that switches protocols.
    /// - Returns: the server's choice of subprotocol.
    func subprotocol(of head: ResponseHead) throws -> String? {
        let headers = head.headers
        func refuse(_ reason: String) -> HTTPError { .unusable(reason) }
        guard headers.has("upgrade", listing: "websocket"), headers.has("connection", listing: "upgrade") else {
            throw refuse("an upgrade to something else than a WebSocket")
        }
        // A server that has not read the request, such as a cache, does not know this answer.
        guard headers.all("sec-websocket-accept") == [webSocketAccept(key)] else {
            throw refuse("a WebSocket with the answer to another key")
        }
        if headers.has("sec-websocket-extensions") { throw refuse("an extension that was not asked for") }
        let chosen = headers.all("sec-websocket-protocol")
        guard chosen.count <= 1, chosen.allSatisfy(protocols.contains) else {
            throw refuse("a subprotocol that was not asked for")
        }
        return chosen.first
    }
}
