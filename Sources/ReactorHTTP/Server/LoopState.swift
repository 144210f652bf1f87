import Promises
import Reactor
import ReactorIO
import ReactorLibc

final class LoopState {
    private static let ofLoops = LoopLocal { LoopState() }
    private let kernel = EventLoop.ofCurrentThread.kernel
    /// The beginning of the last response's head, which most responses share: see `beginning`.
    // `@exclusivity(unchecked)`: used on one thread, and no field changes during calls that could call back.
    @exclusivity(unchecked) private var cached: (status: Status, type: String?, second: time_t, bytes: [UInt8]) =
        (.ok, nil, -1, [])
    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT`, with its CR LF, formatted once a second.
    @exclusivity(unchecked) private var date: (second: time_t, line: [UInt8]) = (-1, [])
    /// The last answered request, reused if nothing else retains it.
    @exclusivity(unchecked) private var last: RequestStorage?

    static func of(_ connection: Connection) -> LoopState { ofLoops.value(for: connection) }

    func takeRequest() -> RequestStorage {
        // This check would miss weak references, which `Request` prevents.
        if var request = last.take() {
            if isKnownUniquelyReferenced(&request) { return request }
            request.service = nil
        }
        return RequestStorage()
    }

    /// Returns a response's first line, and the fields `Date` and `Content-Type`.
    func beginning(_ status: Status, _ type: String?) -> [UInt8] {
        updateBeginning(status, type)
        return cached.bytes
    }

    /// Appends the usual head in one step: `beginning`, `Content-Length` and the end.
    func appendHead(_ status: Status, _ type: String?, length: Int, _ output: inout ByteWriter) {
        updateBeginning(status, type)
        let name = "Content-Length: " as StaticString
        output.append(atMost: cached.bytes.count + name.utf8CodeUnitCount + 24) { place in
            // Each copy stays within the room, which is the sum of their sizes.
            var end = place.baseAddress!
            cached.bytes.withUnsafeBytes { end.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
            end += cached.bytes.count
            end.copyMemory(from: name.utf8Start, byteCount: name.utf8CodeUnitCount)
            end += name.utf8CodeUnitCount
            let (text, first) = endOfHead(length: length)
            text.span.withUnsafeBytes { end.copyMemory(from: $0.baseAddress! + first, byteCount: 24 - first) }
            return end + (24 - first) - place.baseAddress!
        }
    }

    private func updateBeginning(_ status: Status, _ type: String?) {
        let now = kernel.secondsSinceEpoch
        if cached.second != now || cached.status != status || cached.type != type {
            if date.second != now { date = (now, Array("Date: \(httpDate(now))\r\n".utf8)) }
            cached = (status, type, now, Self.beginning(status, type, date: date.line))
        }
    }

    /// Formats `beginning` with this date line.
    static func beginning(_ status: Status, _ type: String?, date: [UInt8]) -> [UInt8] {
        var output = ByteWriter()
        output.append("HTTP/1.1 ")
        output.append(decimal: status.code)
        output.append(" ")
        output.append(status.reason)
        output.append("\r\n")
        output.append(date)
        if let type {
            output.append("Content-Type: ")
            output.append(value: type)
            output.append("\r\n")
        }
        return output.bytes
    }

    /// Keeps a request's memory and service for the next request. One that is neither in progress nor `last` has no
    /// service: otherwise a program that keeps requests would retain its handler, perhaps in a cycle.
    func giveBack(_ request: consuming RequestStorage) {
        request.end()
        // Filters' values may own more than memory, so they are released with the request.
        if request.notes?.values.isEmpty == false {
            request.service = nil
            return
        }
        last?.service = nil
        last = request
    }

    /// Releases `service` at the end of its conversation, perhaps the last.
    func forget(_ service: HTTPService) { if last?.service === service { last?.service = nil } }
}
