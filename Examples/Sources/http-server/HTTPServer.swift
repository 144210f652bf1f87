import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorConsole
import ReactorHTTP
import ReactorIO

/// The program: listens, prints its address, and serves until SIGTERM or SIGINT.
@main
package enum HTTPServer {
    package static func main() { runProgram("http-server") { arguments in try serve(Options(arguments)) } }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address, backlog: 1024, options: [.set(.keepAlive, to: true)])
        let secure = try TLSSettings(options)
        // The first signal closes idle connections and lets requests in progress be answered; a second signal ends the
        // process at once.
        var isDraining = false
        let serving = ServeOptions(
            maxConnections: 10_000, memoryLimit: 256 << 20, stopSignals: [SIGTERM, SIGINT],
            drainTimeout: options.drainTimeout,
            onSignal: { signal in
                if isDraining { _exit(128 + signal) }
                isDraining = true
            })
        let files = options.files.map { StaticFiles($0) }
        let served = listener.serveHTTP(options.http, serving: secure.added(to: serving)) { request in
            respond(to: request, options, files)
        }
        let reload = try secure.reloadAtHangup()
        defer { reload?.cancel() }
        let console = try options.console.map { try Console.start(at: $0) }
        defer { console?.stop() }
        listener.printAddress()
        try hang(served)
    }

    package static func respond(to request: Request, _ options: Options, _ files: StaticFiles?) -> Answer {
        switch (request.path, request.method) {
        case ("/", .get), ("/", .head): .now(Response("Hello, world!\n"))
        case ("/slow", .get), ("/slow", .head): .later(slow(request, options.slowness))
        case ("/echo", .post): .now(echo(request))
        case ("/socket", .get): .now(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        case ("/", _), ("/slow", _): .now(refusal("Use GET\n", allowing: "GET, HEAD"))
        case ("/echo", _): .now(refusal("Use POST\n", allowing: "POST"))
        default: file(request, files) ?? .now(Response("Not found\n", status: .notFound))
        }
    }

    /// A file of the folder, below `/files`.
    private static func file(_ request: Request, _ files: StaticFiles?) -> Answer? {
        guard let files, request.path.hasPrefix("/files/") else { return nil }
        return .later(files.response(to: request, path: String(request.path.dropFirst(6))))
    }

    private static func refusal(_ text: String, allowing methods: String) -> Response {
        Response(text, status: .methodNotAllowed, headers: ["Allow": methods])
    }

    /// Sends the body back as it arrives: with its length if known, otherwise in chunks.
    private static func echo(_ request: Request) -> Response {
        let body = request.body
        return .stream(type: "text/plain", length: body.length) { output in body.forEach { output.write($0) } }
    }

    /// Answers after a delay, unless the client disconnects before. A client that half-closes counts as disconnected.
    private static func slow(_ request: Request, _ time: Duration) -> Promise<Response> {
        guard let connection = request.connection else { return .value(Response(.serviceUnavailable)) }
        return connection.cancelWhenPeerGone { after(time) }.map { Response("At last\n") }
    }
}
