// The WebSocket echo of Examples/http-server on SwiftNIO, with one thread: texts are echoed as bytes, without
// validating UTF-8, and flushed when a read pass ends.
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

#if canImport(Glibc)
import Glibc
#endif

/// Echoes the messages of one connection, which come in one frame each.
final class Echo: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text, .binary: send(frame.opcode, frame.unmaskedData, context)
        case .ping: send(.pong, frame.unmaskedData, context)
        case .connectionClose:
            let end = context.write(
                wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: frame.unmaskedData)))
            end.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    private func send(_ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: data)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

guard CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--listen",
    let colon = CommandLine.arguments[2].lastIndex(of: ":"),
    let port = Int(CommandLine.arguments[2][colon...].dropFirst())
else {
    print("usage: nio-websocket --listen ADDRESS:PORT")
    exit(2)
}
signal(SIGTERM) { _ in _exit(0) }

let upgrader = NIOWebSocketServerUpgrader(
    shouldUpgrade: { channel, head in channel.eventLoop.makeSucceededFuture(head.uri == "/socket" ? [:] : nil) },
    upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
    })
let channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
    .serverChannelOption(ChannelOptions.backlog, value: 1024)
    .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
    .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
        }
    }
    .bind(host: String(CommandLine.arguments[2][..<colon]), port: port).wait()
print("listening on 127.0.0.1:\(channel.localAddress!.port!)")
fflush(nil)
try channel.closeFuture.wait()
