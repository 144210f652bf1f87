// The answer of Examples/http-server to `GET /` on SwiftNIO, with one thread: answers are written, and flushed when a
// read pass ends.
import NIOCore
import NIOHTTP1
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

/// The field `Date`, formatted once a second. Shared by all connections: there is one thread.
final class DateField {
    private var second: time_t = -1
    private var text = ""

    var value: String {
        let now = time(nil)
        if now != second {
            var (seconds, fields) = (now, tm())
            gmtime_r(&seconds, &fields)
            var buffer = [CChar](repeating: 0, count: 64)
            let count = strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &fields)
            text = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            second = now
        }
        return text
    }
}

/// Answers the requests of one connection.
final class Hello: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let date: DateField
    private let body: ByteBuffer
    private var head: HTTPRequestHead?

    init(_ date: DateField, _ body: ByteBuffer) {
        self.date = date
        self.body = body
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end: answer(context)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    private func answer(_ context: ChannelHandlerContext) {
        guard let head else { return }
        self.head = nil
        let isFound = head.uri == "/"
        var answer = HTTPResponseHead(version: head.version, status: isFound ? .ok : .notFound)
        answer.headers.add(name: "Date", value: date.value)
        answer.headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
        if !head.isKeepAlive { answer.headers.add(name: "Connection", value: "close") }
        answer.headers.add(name: "Content-Length", value: isFound ? String(body.readableBytes) : "0")
        context.write(wrapOutboundOut(.head(answer)), promise: nil)
        if isFound { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        let end = context.write(wrapOutboundOut(.end(nil)))
        if !head.isKeepAlive { end.assumeIsolated().whenComplete { _ in context.close(promise: nil) } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

guard CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--listen",
    let colon = CommandLine.arguments[2].lastIndex(of: ":"),
    let port = Int(CommandLine.arguments[2][colon...].dropFirst())
else {
    print("usage: nio-http --listen ADDRESS:PORT")
    exit(2)
}
signal(SIGTERM) { _ in _exit(0) }

let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let date = NIOLoopBoundBox.makeBoxSendingValue(DateField(), eventLoop: group.next())
let channel = try ServerBootstrap(group: group)
    .serverChannelOption(ChannelOptions.backlog, value: 1024)
    .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
    .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
            let hello = Hello(date.value, ByteBuffer(string: "Hello, world!\n"))
            try channel.pipeline.syncOperations.addHandler(hello)
        }
    }
    .bind(host: String(CommandLine.arguments[2][..<colon]), port: port).wait()
print("listening on 127.0.0.1:\(channel.localAddress!.port!)")
fflush(nil)
try channel.closeFuture.wait()
