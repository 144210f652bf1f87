@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Metrics in Prometheus' text format 0.0.4, read as strictly as its documentation allows.
struct Exposition {
    private(set) var types: [String: String] = [:]
    /// Keyed by name and labels, verbatim.
    private(set) var samples: [String: Double] = [:]

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Failure(description: "the last line does not end") }
        var helped: Set<Substring> = []
        var family: Substring = ""
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            let words = line.split(separator: " ", maxSplits: 3)
            if line.hasPrefix("# HELP "), words.count == 4 {
                guard helped.insert(words[2]).inserted else { throw Failure(description: "twice: \(line)") }
                family = words[2]
            } else if line.hasPrefix("# TYPE "), words.count == 4, words[2] == family {
                guard ["counter", "gauge"].contains(words[3]), types[String(family)] == nil,
                    (words[3] == "counter") == family.hasSuffix("_total")
                else { throw Failure(description: "what is '\(line)'?") }
                types[String(family)] = String(words[3])
            } else {
                try addSample(line, of: family)
            }
        }
    }

    private mutating func addSample(_ line: Substring, of family: Substring) throws {
        guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
            throw Failure(description: "'\(line)' has no value")
        }
        let key = line[..<space]
        let name = key.prefix { $0 != "{" }
        let labels = key.dropFirst(name.count)
        let isName = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        guard isName, name.first?.isNumber == false, name == family, types[String(name)] != nil,
            labels.isEmpty || labels.hasPrefix("{") && labels.hasSuffix("\"}") && labels.contains("=\""),
            samples.updateValue(value, forKey: String(key)) == nil
        else { throw Failure(description: "what is '\(line)'?") }
    }

    subscript(name: String) -> Double? { samples[name] }
}

extension ServerProcess {
    /// Its metrics.
    func exposition() throws -> Exposition {
        let answer = try Answer.to("GET /metrics HTTP/1.1\r\n\r\n", at: Peer(to: try #require(metricsAddress)))
        expectEqual(answer.status, "200 OK")
        return try Exposition(answer.body)
    }
}

/// An HTTP response.
struct Answer {
    let status: String
    let fields: [String: String]
    let body: String

    init(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.unicodeScalars.firstRange(of: "\r\n\r\n".unicodeScalars) else {
            throw Failure(description: "'\(text)' has no head")
        }
        body = String(text.unicodeScalars[end.upperBound...])
        let head = String(text.unicodeScalars[..<end.lowerBound]).split(separator: "\r\n").map(String.init)
        guard head[0].hasPrefix("HTTP/1.1 ") else { throw Failure(description: head[0]) }
        status = String(head[0].dropFirst(9))
        var fields: [String: String] = [:]
        for line in head.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw Failure(description: line) }
            fields[String(line[..<colon])] = String(line[colon...].dropFirst(2))
        }
        self.fields = fields
    }

    /// The answer of `address` to `request`.
    static func to(_ request: String, at client: Peer) throws -> Answer {
        try client.send(Array(request.utf8))
        return try Answer(client.readToEnd())
    }
}
