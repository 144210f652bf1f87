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

    @Test(.tls) func aSignalReloadsAndEachReloadIsReported() throws {
        let server = try makeServer()
        let client = try TLSClient(clientConfiguration())
        let before = try net.tls(client, server)
        var reports: [TLSError?] = []
        let watch = try server.reload(atSignal: SIGHUP) { reports.append($0) }
        watch.ref()
        func signal() throws {
            let count = reports.count
            kill(getpid(), SIGHUP)
            try net.loop.run(until: { reports.count > count })
        }
        try folder.write(Array("no certificate".utf8), to: "chain")
        try signal()
        expectEqual(reports.last??.reason, "\(folder.path)/chain: there is no certificate")
        let between = try net.tls(client, server)
        try folder.write(Certificates.shared.serverChain, to: "chain")
        try signal()
        expect(reports.count == 2 && reports.last! == nil)
        for ends in [before, between, try net.tls(client, server)] {
            try hang(ends.client.write("still"), timeout: patience)
            expectEqual(try hang(ends.server.receive(), timeout: patience), Array("still".utf8))
            ends.client.abort()
            ends.server.abort()
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
