/// The example programs of PromiseKit, with `fetch` in place of a URLSession.
struct FirstProgramsTests {
    private func answer(_ request: Request) -> Answer {
        switch request.path {
        case "/login":
            return .later(request.body.text().map { $0 == "me" ? Response("a.png") : Response(.unauthorized) })
        case "/images/a.png": return .now(Response([0x89, 0x50], type: "image/png"))
        default: return .now(Response(request.path))
        }
    }

    @Test(.served, arguments: [("me", [0x89, 0x50]), ("you", [])] as [(String, [UInt8])])
    func logInAndFetchTheImage(_ name: String, _ image: [UInt8]) throws {
        try serve(answer)
        var log = ["start"]
        let shown = firstly { client.fetch("http://\(address)/login", .post, body: .text(name)) }
            .then { try $0.validated().body.text() }
            .then { avatar in client.fetch("http://\(address)/images/\(avatar)") }
            .then { try $0.validated().body.bytes() }
            .ensure { log.append("stop") }
            .recover { error -> Promise<[UInt8]> in
                log.append("\(error)")
                return .value([])
            }
        let bytes = try hang(shown, timeout: patience)
        expect(bytes == image && log == ["start", "stop"] + (image.isEmpty ? ["401 Unauthorized"] : []))
    }

    @Test(.served) func tenPagesThreeAtATime() throws {
        try serve(answer)
        let pages = when(fulfilled: 1...10, concurrently: 3) { number in
            client.fetch("http://\(address)/pages/\(number)").then { $0.body.text() }
        }
        let texts = try hang(pages, timeout: patience)
        expect(texts == (1...10).map { "/pages/\($0)" } && listener.activeConnections <= 3)
    }
}
