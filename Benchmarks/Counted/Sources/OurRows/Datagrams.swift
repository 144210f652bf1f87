import Glibc
import Promises
import Reactor
import ReactorIO
import Workload

let datagrams: [Workload] = [
    Workload("datagram", run: answerDatagrams)
]

/// Turns that each receive a datagram of 64 bytes and send it back.
func answerDatagrams(_ n: Int) {
    let server = try! DatagramSocket.bind("127.0.0.1:0")
    server.forEachPacket { bytes, origin in server.post(bytes, to: origin.address) }.catch(policy: .allErrors) { _ in }
    let client = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(server.localAddress!.port).bigEndian
    address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeBytes(of: &address) {
        connect(client, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
    }
    var message = [UInt8](repeating: 0x2e, count: 64)
    for _ in 0..<n {
        send(client, message, message.count, 0)
        try! EventLoop.current.turn()
        precondition(recv(client, &message, message.count, CInt(MSG_DONTWAIT)) == message.count)
    }
    server.close()
    close(client)
}
