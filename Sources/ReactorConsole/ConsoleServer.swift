import Promises
import Reactor
import ReactorHTTP
import ReactorIO

final class ConsoleServer {
    let address: SocketAddress
    private let listener: Listener
    private let watcher: Watcher
    private let admission: Admission

    private static var mostConnections: Int { 32 }
    /// The permitted seconds of tracing, and of a recording.
    private static var tracing: ClosedRange<Int> { 0...600 }
    private static var recording: ClosedRange<Int> { 1...30 }

    init(_ address: SocketAddress, _ token: String?) throws {
        listener = try Listener.bind(address, mode: address.isUnix ? 0o600 : nil)
        self.address = listener.localAddress
        admission = Admission(token: token)
        watcher = Watcher()
        var options = HTTPOptions()
        options.maxBody = 1024
        options.transform = { _, response in Self.secure(&response) }
        listener.serveHTTP(
            options, serving: ServeOptions(maxConnections: Self.mostConnections), onError: { _, _ in },
            handler: { [unowned self] request in answer(to: request) }
        ).cauterize()
    }

    func end() {
        watcher.end()
        listener.drain(deadline: .zero).done { _ in withExtendedLifetime(self) { _ = EventLoop.current.remote.stop() } }
    }

    /// Sets the fields of all responses but the page's policy.
    private static func secure(_ response: inout Response) {
        let fields = [
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ]
        for (name, value) in fields { response.headers[name] = value }
        if !response.headers.has("content-security-policy") {
            response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
        }
    }

    // MARK: Requests

    /// Answers with errors as plain text, which `curl` shows.
    private func answer(to request: Request) -> Answer {
        do {
            let answer = try admitted(request)
            guard case .later(let promise) = answer else { return answer }
            return .later(promise.recover(policy: .allErrors) { .value(Self.failure($0)) })
        } catch { return .now(Self.failure(error)) }
    }

    private static func failure(_ error: any Error) -> Response {
        guard let error = error as? HTTPError else {
            return Response("The console has failed: \(error)\n", status: .internalServerError)
        }
        return Response("\(error.detail ?? error.reason)\n", status: error.status, headers: error.headers)
    }

    private func admitted(_ request: Request) throws -> Answer {
        switch admission.answer(to: request.headers, host: request.host) {
        case .admitted: break
        case .wrongHost: throw HTTPError(Status(421), detail: "Use localhost or 127.0.0.1 as the host.")
        case .otherSite: throw HTTPError(.forbidden, detail: "This is not for pages of other sites.")
        case .noToken:
            throw HTTPError(
                .unauthorized, detail: "The token is missing or wrong.",
                headers: ["WWW-Authenticate": "Basic realm=\"console\""])
        }
        let lists = ["connections", "promises", "order"]
        let pages: [String: (method: Method, parameters: [String], answer: (Request) throws -> Answer)] = [
            "/": (.get, [], { _ in .now(Page.response()) }),
            "/text": (.get, lists + ["columns"], { .later(try self.text($0)) }),
            "/json": (.get, lists, { .later(try self.json($0)) }),
            "/metrics": (.get, [], { _ in .later(self.metrics()) }),
            "/events": (.get, lists, { .now(try self.stream($0)) }),
            "/trace": (.post, ["seconds"], { .now(try self.trace($0)) }),
            "/record": (.post, ["seconds"], { .later(try self.record($0)) }),
        ]
        guard let page = pages[request.path] else {
            throw HTTPError(
                .notFound, detail: "There is GET /, /text, /json, /metrics, /events; POST /trace, /record.")
        }
        guard request.method == page.method || request.method == .head && request.path == "/" else {
            throw HTTPError(.methodNotAllowed, detail: "Use \(page.method).", headers: ["Allow": "\(page.method)"])
        }
        let names = (request.query ?? "").split(separator: "&").map { String($0.prefix { $0 != "=" }) }
        if names.contains(where: { !page.parameters.contains($0) }) {
            let known = page.parameters.isEmpty ? "no parameters" : "only " + page.parameters.joined(separator: ", ")
            throw HTTPError(.badRequest, detail: "\(request.path) takes \(known).")
        }
        return try page.answer(request)
    }

    private func snapshot(_ scope: Snapshot.Scope) -> Promise<Snapshot> {
        watcher.attend().then { [watcher] in watcher.look() }.map { [watcher] _ in Snapshot(of: watcher, scope) }
            .asPromise()
    }

    private func scope(_ request: Request, lines: Int) throws -> Snapshot.Scope {
        let parameters = request.queryParameters
        var scope = Snapshot.Scope()
        scope.connections = try Self.number("connections", parameters, 0...Snapshot.Scope.most, default: lines)
        scope.promises = try Self.number("promises", parameters, 0...Snapshot.Scope.most, default: lines)
        if let order = parameters["order"] {
            guard let known = Snapshot.ConnectionOrder(rawValue: order) else {
                let all = Snapshot.ConnectionOrder.allCases.map(\.rawValue).joined(separator: ", ")
                throw HTTPError(.badRequest, detail: "The order is one of \(all).")
            }
            scope.order = known
        }
        return scope
    }

    private static func number(
        _ name: String, _ parameters: Parameters, _ bounds: ClosedRange<Int>, default value: Int
    ) throws -> Int {
        let number = try parameters.value(name, default: value)
        guard bounds ~= number else {
            throw HTTPError(.badRequest, detail: "\(name) is from \(bounds.lowerBound) to \(bounds.upperBound).")
        }
        return number
    }

    private func text(_ request: Request) throws -> Promise<Response> {
        let columns = try Self.number("columns", request.queryParameters, 80...160, default: 110)
        return snapshot(try scope(request, lines: 40)).map { [tracer] in
            Response($0.text(columns: columns, tracer: tracer))
        }
    }

    /// The shell command that switches tracing on.
    private var tracer: String {
        let token = admission.token == nil ? "" : " -H \"Authorization: Bearer $TOKEN\""
        let path = "/trace?seconds=60'"
        if let file = address.unixPath {
            return "curl -X POST\(token) 'http://localhost\(path) --unix-socket '\(file)'"
        }
        return "curl -X POST\(token) 'http://\(address)\(path)"
    }

    private func json(_ request: Request) throws -> Promise<Response> {
        snapshot(try scope(request, lines: 1000)).map { Response($0.json, type: "application/json") }
    }

    private func metrics() -> Promise<Response> {
        snapshot(Snapshot.Scope(connections: 0, promises: 0)).map {
            Response($0.prometheusText, type: "text/plain; version=0.0.4; charset=utf-8")
        }
    }

    /// Repeats `/json` as server-sent events.
    private func stream(_ request: Request) throws -> Response {
        guard let connection = request.connection else { throw HTTPError(.internalServerError) }
        let scope = try scope(request, lines: 200)
        return .stream(type: "text/event-stream") { [self] output in
            connection.cancelWhenPeerGone {
                repeatWhile {
                    self.snapshot(scope).then { snapshot -> Promise<Bool> in
                        let pause = max(Duration.seconds(1), .nanoseconds(snapshot.cost * 50))
                        return output.write("data: \(snapshot.json)\n\n").then { after(pause) }
                            .map { !connection.isDraining }
                    }
                }
            }
        }
    }

    // MARK: Switches

    private func trace(_ request: Request) throws -> Response {
        let seconds = try Self.number("seconds", request.queryParameters, Self.tracing, default: 60)
        watcher.setTracing(for: seconds == 0 ? nil : .seconds(seconds))
        return Response("{\"on\":\(conf.trace)}", type: "application/json")
    }

    private func record(_ request: Request) throws -> Promise<Response> {
        let seconds = try Self.number("seconds", request.queryParameters, Self.recording, default: 5)
        if watcher.recording != nil { throw HTTPError(.conflict, detail: "A recording is in progress.") }
        guard let connection = request.connection else { throw HTTPError(.internalServerError) }
        return connection.cancelWhenPeerGone { self.watcher.record(for: .seconds(seconds)) }.map { text in
            Response(
                text, type: "application/json",
                headers: ["Content-Disposition": "attachment; filename=\"recording.json\""])
        }
    }
}
