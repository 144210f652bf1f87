// The same server on SwiftNIO, with one thread: reads are echoed by write, and flushed when a read pass ends.
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.write(data, promise: nil) }
    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .some(.inputClosed) = event as? ChannelEvent else { return }
        // After all pending writes.
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

guard CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--listen",
    let colon = CommandLine.arguments[2].lastIndex(of: ":"),
    let port = Int(CommandLine.arguments[2][colon...].dropFirst())
else {
    print("usage: nio-echo --listen ADDRESS:PORT")
    exit(2)
}
var files = rlimit()
getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
files.rlim_cur = files.rlim_max
setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
signal(SIGTERM) { _ in _exit(0) }

let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let channel = try ServerBootstrap(group: group)
    .serverChannelOption(ChannelOptions.backlog, value: 4096)
    .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
    .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
    .childChannelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
    }
    .bind(host: String(CommandLine.arguments[2][..<colon]), port: port).wait()
print("listening on 127.0.0.1:\(channel.localAddress!.port!)")
fflush(nil)
try channel.closeFuture.wait()
