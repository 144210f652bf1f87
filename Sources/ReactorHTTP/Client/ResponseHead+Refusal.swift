import Promises
import ReactorIO

extension ResponseHead {
    /// Reads the beginning of a refusal's body, on a connection that is not used again: the part of the first 64 KiB
    /// that arrives within a second.
    func refusal(on connection: Connection, _ options: HTTPClient.Options) -> Promise<[UInt8]> {
        let limit = 65_536
        var kept: [UInt8] = []
        let body = Body(framing, of: connection, limit: limit, maxHead: options.maxHead, isOfResponse: true)
        let rest = body.forEach { part in
            kept += part.prefix(limit - kept.count)
            if kept.count == limit { throw StopReading() }
        }
        return rest.timeout(.seconds(1)).recover { _ in .value }.map { kept }
    }
}
