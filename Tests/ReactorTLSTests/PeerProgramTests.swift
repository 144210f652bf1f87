#if TLS
/// The program openssl as the peer, in a separate process.
@Suite(.serialized) struct PeerProgramTests {
    private static let files: CertificateFolder = {
        let folder = CertificateFolder()
        let certificates = Certificates.shared
        do {
            try folder.write(certificates.authority, to: "authority.pem")
            try folder.write(certificates.serverChain, to: "server.pem")
            try folder.write(certificates.serverKey, to: "server.key")
        } catch { fatalError("\(error)") }
        return folder
    }()

    /// Serves lines, reversed as `openssl s_server -rev` does, and answers a request for a page. Returns the port.
    private func serve(_ configuration: TLSConfiguration = serverConfiguration()) throws -> UInt16 {
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve(.tls(try TLSServer(configuration))) { connection in
            connection.forEachLine { line -> Promise<Void> in
                if !line.hasPrefix("GET ") { return connection.write(String(line.reversed()) + "\n") }
                let resumed = connection.hasResumedTLSSession ? "resumed" : "full"
                let name = connection.requestedServerName ?? "none"
                return connection.write("HTTP/1.0 200 OK\r\n\r\n\(connection.tlsVersion!) \(resumed) \(name)\n")
                    .done { throw StopReading() }
            }
        }
        return listener.localAddress.port
    }

    /// The output and the errors of a client that asks for the page.
    private func page(_ port: UInt16, _ arguments: String...) throws -> String {
        // -quiet would not end with its input.
        let client = "openssl s_client -connect 127.0.0.1:\(port) -ign_eof -CAfile authority.pem \"$@\" 2>&1"
        let output = try hang(
            ChildProcess.run(
                "sh", ["-c", "printf 'GET / HTTP/1.0\\n' | \(client)", "sh"] + arguments,
                workingDirectory: Self.files.path, timeout: patience))
        expect(output.status.isSuccess, output.text)
        return output.text
    }

    @Test(.tls(turns: .max), arguments: ["-tls1_2", "-tls1_3"])
    func opensslIsAClientAndResumesItsSession(version: String) throws {
        let port = try serve()
        let name = version == "-tls1_2" ? "TLSv1.2" : "TLSv1.3"
        let first = try page(
            port, version, "-servername", "localhost", "-verify_hostname", "localhost", "-verify_return_error",
            "-sess_out", "session")
        expect(first.contains("\(name) full localhost\n") && first.contains("Verify return code: 0 (ok)"), first)
        let second = try page(port, version, "-servername", "localhost", "-sess_in", "session")
        expect(second.contains("\(name) resumed ") && second.contains("Reused, "), second)
    }

    /// A name that is a path, or a log line, reaches no code that looks for an identity.
    @Test(
        .tls(turns: .max),
        arguments: [
            ("good.example.test", "good.example.test"), ("GOOD.Example.Test", "good.example.test"),
            ("../../etc/ssl/private/x", nil), ("a\nlog forged", nil), ("-a.test", nil), ("a..b", nil), ("x/y", nil),
            ("\u{1B}[2J", nil), ("127.0.0.1", nil), (".", nil),
        ] as [(String, String?)])
    func aNameOfAClientIsADNSNameOrNone(sent: String, seen: String?) throws {
        let names = Shared<[String]>([])
        let output = try page(
            serve(
                serverConfiguration {
                    $0.identityForName = { name in
                        names.change { $0.append(name) }
                        return nil
                    }
                }), "-servername", sent)
        expect(output.contains(" full \(seen ?? "none")\n") && names.value == (seen.map { [$0] } ?? []), output)
    }

    /// Calls `body` with the program's input and output.
    private func withOpenSSL(_ arguments: [String], _ body: (Connection, Connection) throws -> Void) throws {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "exec openssl \"$@\" 2>&1", "sh"] + arguments, workingDirectory: Self.files.path,
            standardInput: .pipe, standardOutput: .pipe)
        defer {
            try? child.kill(SIGKILL)
            _ = hang(child.exit)
        }
        try body(#require(child.standardInput), #require(child.standardOutput))
    }

    @Test(.tls(turns: .max)) func opensslAsksForARenegotiationAndIsRefused() throws {
        let arguments = ["s_client", "-tls1_2", "-connect", "127.0.0.1:\(try serve())", "-CAfile", "authority.pem"]
        try withOpenSSL(arguments) { input, output in
            try hang(input.write("abc\n"), timeout: patience)
            _ = try hang(output.read(until: "cba\n"), timeout: patience)
            try hang(input.write("R\n"), timeout: patience)
            let rest = String(decoding: try hang(readToEnd(output), timeout: patience), as: UTF8.self)
            expect(rest.contains("RENEGOTIATING") && rest.contains("no renegotiation"))
        }
    }

    @Test(.tls(turns: .max), arguments: ["-tls1_2", "-tls1_3"]) func opensslIsAServer(version: String) throws {
        let arguments =
            ["s_server", "-accept", "127.0.0.1:0", version, "-cert", "server.pem", "-cert_chain", "server.pem"]
            + ["-key", "server.key", "-rev", "-alpn", "lines"]
        try withOpenSSL(arguments) { _, output in
            var line = ""
            while !line.hasPrefix("ACCEPT") { line = try #require(try hang(output.readLine(), timeout: patience)) }
            let port = try #require(line.split(separator: ":").last)
            let client = try TLSClient(clientConfiguration { $0.applicationProtocols = ["lines"] })
            for round in 0..<2 {
                let connection = try hang(connect(to: "localhost:\(port)", tls: client), timeout: patience)
                try hang(connection.write("hello\n"), timeout: patience)
                expectEqual(try hang(connection.readLine(), timeout: patience), "olleh")
                expectEqual(connection.negotiatedProtocol, "lines")
                expect(connection.hasResumedTLSSession == (round == 1))
                hang(connection.close(linger: .zero))
            }
        }
    }
}
#endif
