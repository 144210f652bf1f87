import ReactorConsole

/// The answer of a console.
struct ConsoleAnswer {
    let status: Int
    /// In lower case.
    let head: String
    let body: String
}

/// Runs `body` on a loop of its own with a console, at a Unix socket unless `address` says otherwise, and stops that.
func withConsole(at address: String? = nil, token: String? = nil, _ body: (Console) throws -> Void) throws {
    let folder = Folder()
    try EventLoop.withLoop { _ in
        let console = try Console.start(at: address ?? "unix:\(folder / "console")", token: token)
        defer { console.stop() }
        try body(console)
    }
}

extension Console {
    /// Sends a request, with these fields beside `Host`, and returns the answer. This thread's loop runs meanwhile.
    func ask(
        _ target: String, _ method: String = "GET", host: String = "localhost", _ fields: [String: String] = [:]
    ) throws -> ConsoleAnswer {
        let connection = try hang(connect(to: address))
        defer { connection.abort() }
        let lines =
            ["\(method) \(target) HTTP/1.1", "Host: \(host)", "Connection: close"] + fields.map { "\($0): \($1)" }
        try hang(connection.write(lines.joined(separator: "\r\n") + "\r\n\r\n"))
        let text = String(decoding: try hang(all(of: connection), timeout: .seconds(60)), as: UTF8.self)
        let end = text.firstRange(of: "\r\n\r\n")
        return ConsoleAnswer(
            status: Int(text.split(separator: " ").dropFirst().first ?? "") ?? 0,
            head: text[..<(end?.lowerBound ?? text.endIndex)].lowercased(),
            body: end.map { String(text[$0.upperBound...]) } ?? "")
    }

    private func all(of connection: Connection) -> Promise<[UInt8]> {
        func more(_ bytes: [UInt8]) -> Promise<[UInt8]> {
            connection.receive().then { $0.isEmpty ? .value(bytes) : more(bytes + $0) }
        }
        return more([])
    }

    /// Asks until the answer has `text`, at most for a minute.
    func ask(_ target: String, until text: String) throws -> ConsoleAnswer {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let answer = try ask(target)
            if answer.body.contains(text) || ContinuousClock.now > end { return answer }
        }
    }
}
