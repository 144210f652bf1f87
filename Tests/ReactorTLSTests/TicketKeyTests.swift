#if TLS
@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Tickets that several servers, or a server before and after a reload, can decrypt.
struct TicketKeyTests {
    @Test(.tls, arguments: TLSVersion.allCases, [48, 80]) func serversWithOneKeyResumeEachOthersSessions(
        version: TLSVersion, size: Int
    ) throws {
        let keys = [try TLSTicketKey(pattern(size))]
        let configuration = serverConfiguration { $0.ticketKeys = keys }
        let client = try TLSClient(clientConfiguration { $0.maximumVersion = version })
        try net.converse(client, try TLSServer(configuration), isResumed: false)
        try net.converse(client, try TLSServer(configuration), isResumed: true)
        // Without them each server has its own key.
        try net.converse(client, try TLSServer(serverConfiguration()), isResumed: false)
    }

    @Test(.tls, arguments: TLSVersion.allCases) func aKeyIsReplacedWithoutFullHandshakes(version: TLSVersion) throws {
        let client = try TLSClient(clientConfiguration { $0.maximumVersion = version })
        let (old, new) = (try TLSTicketKey.random(), try TLSTicketKey.random())
        expect(old != new && "\(old)".hasPrefix("ticket key "))
        var configuration = serverConfiguration { $0.ticketKeys = [old] }
        let server = try TLSServer(configuration)
        try net.converse(client, server, isResumed: false)
        // A reload does not affect tickets that have their key.
        try server.reload()
        try net.converse(client, server, isResumed: true)
        configuration.ticketKeys = [new, old]
        try server.reload(configuration)
        // Decrypted with the old key, and renewed with the new one.
        try net.converse(client, server, isResumed: true)
        configuration.ticketKeys = [new]
        try server.reload(configuration)
        try net.converse(client, server, isResumed: true)
        configuration.ticketKeys = [old]
        try server.reload(configuration)
        try net.converse(client, server, isResumed: false)
    }

    @Test(.tls) func aForgedTicketMeansAFullHandshake() throws {
        let client = try TLSClient(clientConfiguration { $0.maximumVersion = .tls12 })
        let bytes = pattern(80)
        // With the name of the key, and another secret.
        let other: [UInt8] = bytes[..<16] + bytes[16...].map { ~$0 }
        let keys = [try TLSTicketKey(bytes), try TLSTicketKey(other)]
        try net.converse(client, try TLSServer(serverConfiguration { $0.ticketKeys = [keys[0]] }), isResumed: false)
        try net.converse(client, try TLSServer(serverConfiguration { $0.ticketKeys = [keys[1]] }), isResumed: false)
    }

    /// A resumed client shows no certificate, so a ticket must not outlive the rules that would have verified it.
    @Test(.tls, arguments: TLSVersion.allCases) func aTicketIsVoidWhereOtherClientsAreTrusted(version: TLSVersion)
        throws
    {
        let shared = Certificates.shared
        let client = try TLSClient(
            clientConfiguration {
                $0.maximumVersion = version
                $0.identity = shared.client
            })
        var configuration = serverConfiguration { $0.ticketKeys = [try! TLSTicketKey(pattern(80))] }
        let server = try TLSServer(configuration)
        try net.converse(client, server, isResumed: false)
        configuration.clientCertificates = .required
        configuration.trustRoots = .pem(shared.authority)
        try server.reload(configuration)
        try net.converse(client, server, isResumed: false)
        try net.converse(client, server, isResumed: true)
        configuration.trustRoots = .pem(shared.authority + shared.stranger)
        try server.reload(configuration)
        try net.converse(client, server, isResumed: false)
        configuration.trustRoots = .pem(shared.stranger)
        try server.reload(configuration)
        expectEqual(try cause(of: net.handshake(client, server).serverReady), .certificate(.unknownAuthority))
    }

    @Test func whatIsNoKeyIsRefused() throws {
        for count in [0, 47, 49, 79, 81] {
            expectRefusal("a ticket key of \(count) bytes") {
                _ = try TLSTicketKey([UInt8](repeating: 1, count: count))
            }
        }
        expectRefusal("/nowhere/ticket.key: No such file") { _ = try TLSTicketKey(file: "/nowhere/ticket.key") }
        let folder = CertificateFolder()
        try folder.write(pattern(80), to: "ticket.key")
        expectEqual(try TLSTicketKey(file: "\(folder.path)/ticket.key"), try TLSTicketKey(pattern(80)))
        var text = ""
        dump(try TLSTicketKey(pattern(80)), to: &text)
        expectEqual(text.split(separator: "\n").count, 1)
    }
}
#endif
