import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import SimulatedNetwork

@testable import echo_server

/// The echo server that is shipped, on port 7; pages and a WebSocket, on port 80; on port 81 one that ends in the middle of its
/// answers; on port 82 one that sends as many bytes as a line asks for, and ends.
final class EchoAndWebServices: SoakServices {
    private let maxConnections: Int
    private var echo: EchoServer?

    override init(_ round: SoakRound) {
        maxConnections = 1 + round.dice.below(8)
        super.init(round)
    }

    override func listen() throws {
        var options = Options()
        options.addresses = [try SocketAddress("0.0.0.0:7")]
        options.maxConnections = maxConnections
        options.idleTimeout = .seconds(30)
        let echo = try EchoServer(options, DescriptorLimit(initial: 10_000, current: 10_000))
        self.echo = echo
        for listener in echo.listeners { _ = add(listener) }
        let pages = add(try Listener.bind("0.0.0.0:80"))
        let liar = add(try Listener.bind("0.0.0.0:81"))
        let source = add(try Listener.bind("0.0.0.0:82", options: [.set(.sendBuffer, to: 16_384)]))
        echo.serve().cauterize()
        pages.serveHTTP(onError: { _, _ in }) { [self] request in counted(answer(request)) }.cauterize()
        liar.serve { [self] connection in counted(endEarly(round.note(connection))) }.cauterize()
        source.serve(onError: { _, _ in }) { [self] connection in counted(send(round.note(connection))) }.cauterize()
    }

    private func answer(_ request: Request) -> Promise<Response> {
        switch request.path {
        case "/slow": after(.milliseconds(700)).map { Response("slow") }
        case "/never": after(.seconds(1000)).map { Response("never") }
        case "/echo": request.body.bytes().map { Response($0) }
        case "/long": .value(Response([UInt8](repeating: 7, count: 8000)))
        case "/drip": .value(.stream { [self] output in drip(output, 50) })
        case "/chat": .value(.webSocket(request) { socket in socket.forEach { socket.send($0) } })
        default: .value(Response("hello"))
        }
    }

    /// A byte each second.
    private func drip(_ output: BodyOutput, _ left: Int) -> Promise<Void> {
        if left == 0 { return .value }
        return output.write([7]).then { after(.seconds(1)) }.then { self.drip(output, left - 1) }
    }

    /// A half of an answer, and the end.
    private func endEarly(_ connection: Connection) -> Promise<Void> {
        connection.read().then { _ in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + String(repeating: "x", count: 2500))
        }
    }

    private func send(_ connection: Connection) -> Promise<Void> {
        connection.idleTimeout = .seconds(30)
        return connection.readLine().then { line in
            connection.write([UInt8](repeating: 7, count: line.flatMap { Int($0) } ?? 0))
        }
    }
}
