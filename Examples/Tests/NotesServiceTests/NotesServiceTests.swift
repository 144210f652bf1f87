import NotesService
import Promises
import ReactorHTTP
import Testing

@Suite struct NotesServiceTests {
    let service = notesService(Notes(), files: "/tmp")

    /// The response, and its body as a text.
    private func send(_ request: Request) throws -> (Response, String) {
        let response = try hang(service.respond(to: request).promise)
        let bytes = try hang(response.body?.bytes() ?? .value([]))
        return (response, String(decoding: bytes, as: UTF8.self))
    }

    private func post(_ json: String) throws -> (Response, String) {
        try send(Request(.post, "/notes", body: .text(json, type: "application/json")))
    }

    @Test func aNoteIsKeptForItsTime() throws {
        try withVirtualTime { _ in
            let (made, _) = try post(#"{"text": "milk", "seconds": 3600}"#)
            #expect(made.status == .created && made.headers["location"] == "/notes/1")
            hang(after(.seconds(3599)))
            let (present, text) = try send(Request(.get, "/notes/1"))
            #expect(present.status == .ok && text.contains("milk") && present.headers["cache-control"] == "no-store")
            hang(after(.seconds(2)))
            let (gone, problem) = try send(Request(.get, "/notes/1"))
            #expect(gone.status == .notFound && problem.contains("There is no note 1."))
            #expect(gone.headers["cache-control"] == "no-store")
        }
    }

    @Test func notesAreFound() throws {
        try withVirtualTime { _ in
            for text in ["milk", "bread", "more milk"] { _ = try post(#"{"text": "\#(text)"}"#) }
            let (_, found) = try send(Request(.get, "/notes?word=milk"))
            #expect(found.contains("more milk") && !found.contains("bread"))
            let (removed, _) = try send(Request(.delete, "/notes/1"))
            let (again, _) = try send(Request(.delete, "/notes/1"))
            #expect(removed.status == .noContent && again.status == .notFound)
        }
    }

    @Test(arguments: [
        ("{}", "application/json", 400), (#"{"text": ""}"#, "application/json", 422), ("milk", "text/plain", 415),
    ])
    func whatIsNoNoteIsRefused(_ body: String, _ type: String, _ status: Int) throws {
        try withVirtualTime { _ in
            let (response, _) = try send(Request(.post, "/notes", body: .text(body, type: type)))
            #expect(response.status.code == status && response.contentType == "application/problem+json")
        }
    }

    @Test(arguments: ["/files/.hidden", "/files/a%2Fb"]) func aNameThatLeadsElsewhereIsRefused(_ path: String) throws {
        try withVirtualTime { _ in
            let (response, _) = try send(Request(.put, path, body: .text("x")))
            #expect(response.status == .badRequest)
        }
    }
}
