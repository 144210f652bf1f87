#if TLS
import COpenSSL

@testable import ReactorTLS

/// How streams end: with an end record, without one, and in one direction.
struct EndTests {
    @Test(.tls, arguments: TLSVersion.allCases) func anEndWithoutAnEndRecordIsToldApart(version: TLSVersion) throws {
        for isOrderly in [true, false] {
            let ends = try net.relayedTLS(clientConfiguration { $0.maximumVersion = version })
            try hang(ends.client.write("all"), timeout: patience)
            expectEqual(try hang(ends.server.read(exactly: 3), timeout: patience), Array("all".utf8))
            let line = ends.server.readLine()
            if isOrderly {
                try hang(ends.client.shutdownWrite(), timeout: patience)
                expect(try hang(line, timeout: patience) == nil)
                try hang(ends.server.write("answer"), timeout: patience)
                expectEqual(try hang(ends.client.receive(), timeout: patience), Array("answer".utf8))
            } else {
                ends.relay.nearServer.shutdownWrite().cauterizeAll()
                expect(try error(of: line) as? ConnectionFilterError == .truncated)
                expectEqual(ends.server.read().settledValue, failed(EPROTO))
            }
        }
    }

    @Test(.tls) func bothSidesSendTheirEndRecord() throws {
        let (client, server) = try net.tls()
        let filters = [client, server].compactMap { $0.installedFilter as? TLSFilter }
        try #require(filters.count == 2)
        defer { withExtendedLifetime(filters) {} }
        let closed = client.close()
        expectEqual(try hang(server.read(), timeout: patience), .end)
        expectEqual(SSL_get_shutdown(filters[1].ssl), SSL_RECEIVED_SHUTDOWN)
        hang(server.close())
        try hang(closed, timeout: patience)
        expect(SSL_get_shutdown(filters[0].ssl) & SSL_SENT_SHUTDOWN != 0)
        expectEqual(SSL_get_shutdown(filters[1].ssl), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    }

    @Test(.tls) func aPartOfARecordIsInsideARecord() throws {
        let ends = try net.relayedTLS()
        let filter = try #require(ends.server.installedFilter as? TLSFilter)
        let line = ends.server.readLine()
        expect(!filter.isInsideRecord)
        for part in [[23, 3], [3, 0, 32, 1, 2, 3]] as [[UInt8]] {
            let received = ends.server.bytesReceived
            try hang(ends.relay.nearServer.write(part), timeout: patience)
            try net.loop.run(until: { ends.server.bytesReceived > received })
            expect(filter.isInsideRecord)
        }
        line.cancel()
    }
}
#endif
