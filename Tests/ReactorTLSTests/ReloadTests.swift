#if TLS
/// Reloads at a signal, and two at once.
struct ReloadTests {
    private let folder = CertificateFolder()

    /// A server with the identity of two files of the folder.
    private func makeServer() throws -> TLSServer {
        try folder.write(Certificates.shared.serverChain, to: "chain")
        try folder.write(Certificates.shared.serverKey, to: "key")
        return try TLSServer(
            TLSConfiguration(
                identity: TLSIdentity(
                    certificateChainFile: "\(folder.path)/chain", privateKeyFile: "\(folder.path)/key")))
    }

    /// Handshakes that begin after it see it; open connections continue.
    @Test(.tls) func aSignalReloadsAndEachReloadIsReported() throws {
        let server = try makeServer()
        try folder.run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -subj /CN=new -days 2 \
                -out new.pem
            """)
        let client = try TLSClient(clientConfiguration { $0.serverVerification = .none })
        let before = try net.tls(client, server)
        var reports: [TLSError?] = []
        let watch = try server.reload(atSignal: SIGHUP) { reports.append($0) }
        watch.ref()
        func reload(_ chain: [UInt8]) throws {
            try folder.write(chain, to: "chain")
            let count = reports.count
            kill(getpid(), SIGHUP)
            try net.loop.run(until: { reports.count > count })
        }
        try reload(Array("no certificate".utf8))
        expectEqual(reports.last??.reason, "\(folder.path)/chain: there is no certificate")
        // Only one of the files has been replaced.
        try reload(folder.read("new.pem"))
        expectEqual(reports.last??.reason.contains("key values mismatch"), true)
        let between = try net.tls(client, server)
        try folder.write(folder.read("new.key"), to: "key")
        try reload(folder.read("new.pem"))
        expect(reports.count == 3 && reports.last! == nil)
        let after = try net.tls(client, server)
        expect(!after.client.hasResumedTLSSession)
        for (ends, subject) in [
            (before, "CN=localhost,O=Reactor"), (between, "CN=localhost,O=Reactor"), (after, "CN=new"),
        ] {
            expectEqual(ends.client.peerCertificate?.subject, subject)
            try hang(ends.client.write("still"), timeout: patience)
            expectEqual(try hang(ends.server.receive(), timeout: patience), Array("still".utf8))
        }
        watch.cancel()
    }

    /// A slow reload of the files must not undo settings that were replaced meanwhile.
    @Test func aReloadOfTheFilesKeepsSettingsThatWereReplacedMeanwhile() throws {
        let server = try makeServer()
        let chain = "\(folder.path)/chain"
        unlink(chain)
        try #require(mkfifo(chain, 0o600) == 0)
        let slow = TestThread { try? server.reload() }
        // Waits until the other thread reads the file.
        let file = try #require(fopen(chain, "we"))
        try server.reload(serverConfiguration { $0.maximumVersion = .tls12 })
        let bytes = Certificates.shared.serverChain
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
        slow.join()
        expectEqual(server.configuration.maximumVersion, .tls12)
    }
}
#endif
