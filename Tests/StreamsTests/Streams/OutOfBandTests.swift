import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct OutOfBandTests {
    @Test func anUrgentByteIsPassedOverAndDoesNotSpin() throws {
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            let read = connection.read()
            var urgent = UInt8(1)
            expectEqual(send(peer.fd, &urgent, 1, CInt(MSG_OOB)), 1)
            expect(net.turns { net.settle() } <= 5)
            expect(read.isPending)
            try peer.send("ordinary")
            expectEqual(try hang(read, timeout: patience), .bytes(Array("ordinary".utf8)))
        }
    }
}
