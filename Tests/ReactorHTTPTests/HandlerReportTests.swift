@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Errors of handlers where no `onError` receives them.
struct HandlerReportTests {
    private struct Odd: Error {}

    enum Form: CaseIterable { case listener, task, group, groupTask, connection }

    enum Place: CaseIterable {
        case now, later, late, route, filter, behindFilter, stream, insideStream, upgrade, webSocket, response
        // What a client causes.
        case wrongRequest, halfBody, reset

        var subject: String? {
            switch self {
            case .route, .behindFilter: "GET /notes/{id}, r7"
            case .filter: "GET /notes/{id}"
            case .wrongRequest, .halfBody, .reset: nil
            default: "GET /notes/7"
            }
        }

        var request: String {
            let head = "GET /notes/7?token=secret HTTP/1.1\r\nHost: x\r\n"
            let upgrade = "Connection: upgrade\r\nSec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n"
            return switch self {
            case .webSocket: "\(head)\(upgrade)Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            case .wrongRequest: "GET /\u{1} HTTP/1.1\r\n\r\n"
            case .halfBody, .reset: "\(head)Content-Length: 2\r\n\r\na"
            default: "\(head)\r\n"
            }
        }

        @Sendable func answer(_ request: Request) throws -> Answer {
            let odd = Promise<Void>(error: Odd())
            switch self {
            case .now: throw Odd()
            case .later: return .later(odd.map { Response("") })
            case .late: return .later(Promise(error: PromiseError.timedOut))
            case .route, .filter, .behindFilter:
                let service = Router { request, next in
                    if self == .filter { throw Odd() }
                    request.id = "r7"
                    return next(request)
                }
                let group = self == .behindFilter ? service.group("/notes") { $1($0) } : service.group("/notes")
                group.on(.get, "/{id}") { _ -> Response in throw Odd() }
                return service.respond(to: request)
            case .stream: return .now(.stream { _ in odd })
            case .insideStream: return .now(.stream { output in output.write("a").then { odd } })
            case .upgrade: return .now(.upgrade(to: "x") { _ in odd })
            case .webSocket: return .now(.webSocket(request) { _ in odd })
            case .response: return .now(Response(Status(102)))
            case .wrongRequest, .halfBody, .reset: return .later(request.body.text().map { Response($0) })
            }
        }
    }

    @Test(.inRealTime, arguments: Form.allCases, Place.allCases)
    func namesTheRequestAndTheServe(_ form: Form, _ place: Place) throws {
        // A line for each case, since they run at the same time.
        let (file, line): (StaticString, UInt) =
            ("Here.swift", UInt(Form.allCases.firstIndex(of: form)! * 100 + Place.allCases.firstIndex(of: place)! + 1))
        let recorder = LogRecorder { $0.callSite?.description == "Here.swift:\(line)" }
        defer { recorder.stop() }
        let group = try LoopGroup(loops: 1)
        defer {
            group.stop()
            group.join()
        }
        let task = { @Sendable (request: Request) async throws -> Response in
            try await place.answer(request).promise.value
        }
        try serveHTTP { listener in
            switch form {
            case .listener: listener.serveHTTP(handler: place.answer, file: file, line: line)
            case .task: listener.serveHTTP(handler: task, file: file, line: line)
            case .group: listener.serveHTTP(on: group, handler: place.answer, file: file, line: line)
            case .groupTask: listener.serveHTTP(on: group, handler: task, file: file, line: line)
            case .connection:
                listener.serve(
                    handler: { $0.serveHTTP(handler: place.answer, file: file, line: line) }, file: file, line: line)
            }
        }
        let answer: String
        if place == .reset {
            let client = try connected()
            try hang(client.write(place.request), timeout: patience)
            try EventLoop.current.run(until: { listener.activeConnections == 1 })
            client.abort()
            answer = ""
        } else {
            answer = try conversation(place.request)
        }
        try endServer()
        let error = place == .late ? "\(PromiseError.timedOut)" : place == .response ? "status(102)" : "Odd()"
        // There the program gets the promise of the conversation, here `serve`.
        let isOfCaller = form == .connection && [.insideStream, .upgrade, .webSocket].contains(place)
        let subject = place.subject.map { isOfCaller ? "" : " (\($0))" }
        expectEqual(
            recorder.lines,
            subject.map { ["a handler of the server at Here.swift:\(line) has failed: \(error)\($0)"] } ?? [])
        switch place {
        case .insideStream: expect(answer.hasPrefix("HTTP/1.1 200") && !answer.hasSuffix("0\r\n\r\n"))
        case .upgrade, .webSocket: expect(answer.hasPrefix("HTTP/1.1 101"))
        case .wrongRequest, .halfBody: expect(answer.hasPrefix("HTTP/1.1 400"))
        case .late: expect(answer.hasPrefix("HTTP/1.1 503"))
        case .reset: break
        default: expect(answer.hasPrefix("HTTP/1.1 500"))
        }
    }
}
