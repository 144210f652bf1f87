#if TLS
/// Other programs as peers, each in a separate process: openssl, curl, and Python's ssl.
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

    private static func has(_ program: String) -> Bool {
        (try? EventLoop.withLoop { _ in try hang(ChildProcess.run(program, ["--version"])).status.isSuccess }) ?? false
    }

    /// Serves lines, reversed as `openssl s_server -rev` does, and answers a request for a page.
    private func withServer(
        _ change: (inout TLSConfiguration) -> Void = { _ in }, _ body: (Network, UInt16) throws -> Void
    ) throws {
        _ = Self.files
        try withNetwork(turns: .max) { net in
            let listener = try Listener.bind("127.0.0.1:0")
            let served = listener.serve(.tls(try TLSServer(serverConfiguration(change)))) { connection in
                connection.forEachLine { line -> Promise<Void> in
                    if !line.hasPrefix("GET ") { return connection.write(String(line.reversed()) + "\n") }
                    let resumed = connection.hasResumedTLSSession ? "resumed" : "full"
                    return connection.write("HTTP/1.0 200 OK\r\n\r\n\(connection.tlsVersion!) \(resumed)\n")
                        .done { throw StopReading() }
                }
            }
            try body(net, listener.localAddress.port)
            listener.close()
            try hang(served, timeout: patience)
        }
    }

    /// Runs a program in the certificates' folder. Returns its output and errors if it succeeds.
    private func run(_ program: String, _ arguments: [String], input: String = "") throws -> String {
        let output = try hang(
            ChildProcess.run(
                program, arguments, input: Array(input.utf8), workingDirectory: Self.files.path, timeout: patience))
        expect(output.status.isSuccess, "\(String(decoding: output.standardError, as: UTF8.self))")
        return output.text + String(decoding: output.standardError, as: UTF8.self)
    }

    // MARK: Clients

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func opensslIsAClient(version: String) throws {
        try withServer { _, port in
            // -quiet would not end with its input.
            let output = try run(
                "sh",
                [
                    "-c",
                    """
                    printf 'GET / HTTP/1.0\\n' | openssl s_client -connect 127.0.0.1:\(port) \(version) -ign_eof \
                        -servername localhost -verify_hostname localhost -CAfile authority.pem -verify_return_error
                    """,
                ])
            expect(output.contains("Verify return code: 0 (ok)") && output.contains("full"))
            expect(output.contains(version == "-tls1_2" ? "TLSv1.2 full" : "TLSv1.3 full"))
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func opensslResumesASession(version: String) throws {
        try withServer { _, port in
            let script = """
                client() {
                    printf 'GET / HTTP/1.0\\n' | openssl s_client -connect 127.0.0.1:\(port) \(version) -ign_eof \
                        -servername localhost -CAfile authority.pem -verify_return_error "$@"
                }
                client -sess_out session\(version) > first && client -sess_in session\(version)
                """
            let output = try run("sh", ["-c", script])
            expect(output.contains("resumed\n") && output.contains("Reused, "))
        }
    }

    @Test func opensslAsksForARenegotiationAndIsRefused() throws {
        try withServer { _, port in
            let child = try spawn(
                "sh",
                ["-c", "exec openssl s_client -tls1_2 -connect 127.0.0.1:\(port) -CAfile authority.pem 2>&1"])
            let (input, output) = (try #require(child.standardInput), try #require(child.standardOutput))
            try hang(input.write("abc\n"), timeout: patience)
            _ = try hang(output.read(until: "cba\n"), timeout: patience)
            try hang(input.write("R\n"), timeout: patience)
            let rest = String(decoding: try hang(readToEnd(output), timeout: patience), as: UTF8.self)
            expect(rest.contains("RENEGOTIATING") && rest.contains("no renegotiation"))
            end(child)
        }
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
        _ = Self.files
        let listener = try Listener.bind("127.0.0.1:0")
        var configuration = serverConfiguration()
        configuration.identityForName = { name in
            names.change { $0.append(name) }
            return nil
        }
        let served = listener.serve(.tls(try TLSServer(configuration))) { connection in
            connection.write("name: \(connection.requestedServerName ?? "none")\n")
        }
        let address = "127.0.0.1:\(listener.localAddress.port)"
        let output = try run(
            "openssl",
            ["s_client", "-connect", address, "-servername", sent, "-CAfile", "authority.pem", "-ign_eof"])
        expect(output.contains("name: \(seen ?? "none")\n") && names.value == (seen.map { [$0] } ?? []))
        listener.close()
        try hang(served, timeout: patience)
    }

    @Test(.enabled(if: has("curl"))) func curlFetchesAPage() throws {
        try withServer {
            $0.applicationProtocols = ["http/1.1"]
        } _: { _, port in
            let output = try run(
                "curl",
                ["-sS", "--http1.1", "--cacert", "authority.pem", "--noproxy", "*", "https://localhost:\(port)/"])
            expectEqual(output, "TLSv1.3 full\n")
            let refused = try hang(
                ChildProcess.run("curl", ["-sS", "--noproxy", "*", "https://localhost:\(port)/"], timeout: patience))
            expect(!refused.status.isSuccess, "of an authority that curl does not know")
        }
    }

    @Test(.enabled(if: has("python3")), arguments: ["TLSv1_2", "TLSv1_3"])
    func pythonIsAClientThatEndsInOrder(version: String) throws {
        try withServer { _, port in
            let script = """
                import socket, ssl
                context = ssl.create_default_context(cafile="authority.pem")
                context.minimum_version = context.maximum_version = ssl.TLSVersion.\(version)
                context.set_alpn_protocols(["unused"])
                raw = socket.create_connection(("127.0.0.1", \(port)))
                with context.wrap_socket(raw, server_hostname="localhost") as stream:
                    stream.sendall(b"hello\\n" * 2000)
                    got = b""
                    while len(got) < 12000: got += stream.recv(100000)
                    assert got == b"olleh\\n" * 2000
                    # Sends its end record and waits for that of the peer.
                    stream.unwrap()
                print("done")
                """
            expectEqual(try run("python3", ["-c", script]), "done\n")
        }
    }

    // MARK: Servers

    private func spawn(_ program: String, _ arguments: [String]) throws -> ChildProcess {
        try ChildProcess.spawn(
            program, arguments: arguments, workingDirectory: Self.files.path, standardInput: .pipe,
            standardOutput: .pipe)
    }

    /// Starts a server program, and returns its port, which it prints after `word`.
    private func start(_ program: String, _ arguments: [String], word: String) throws -> (ChildProcess, UInt16) {
        let child = try spawn(program, arguments)
        let output = try #require(child.standardOutput)
        while let line = try hang(output.readLine(), timeout: patience) {
            guard line.hasPrefix(word), let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
                continue
            }
            return (child, port)
        }
        throw SystemError(.read, EPIPE, detail: program)
    }

    private func end(_ child: ChildProcess) {
        try? child.kill(SIGKILL)
        child.standardInput?.close()
        child.standardOutput?.abort()
        _ = hang(child.exit)
    }

    @Test(.tls(turns: .max), arguments: ["-tls1_2", "-tls1_3"]) func opensslIsAServer(version: String) throws {
        let (child, port) = try start(
            "openssl",
            ["s_server", "-accept", "127.0.0.1:0", version, "-cert", "server.pem", "-cert_chain", "server.pem"]
                + ["-key", "server.key", "-rev", "-alpn", "lines"], word: "ACCEPT")
        let client = try TLSClient(clientConfiguration { $0.applicationProtocols = ["lines"] })
        for round in 0..<2 {
            let connection = try hang(connect(to: "localhost:\(port)", tls: client), timeout: patience)
            try hang(connection.write("hello\n"), timeout: patience)
            expectEqual(try hang(connection.readLine(), timeout: patience), "olleh")
            expectEqual(connection.negotiatedProtocol, "lines")
            expect(connection.hasResumedTLSSession == (round == 1))
            hang(connection.close(linger: .zero))
        }
        end(child)
    }

    @Test(.tls(turns: .max), .enabled(if: has("python3")), arguments: [true, false])
    func aPythonServerThatDoesNotSendItsEndRecordIsTruncated(isOrderly: Bool) throws {
        let script = """
            import socket, ssl
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("server.pem", "server.key")
            listener = socket.create_server(("127.0.0.1", 0))
            print("listening:%d" % listener.getsockname()[1], flush=True)
            raw, _ = listener.accept()
            stream = context.wrap_socket(raw, server_side=True)
            assert stream.recv(100) == b"question\\n"
            stream.sendall(b"answer\\n")
            if \(isOrderly ? "True" : "False"):
                try: stream.unwrap()
                except (OSError, ssl.SSLError): pass
            stream.close()
            input()
            """
        let (child, port) = try start("python3", ["-c", script], word: "listening")
        let client = try TLSClient(clientConfiguration())
        let connection = try hang(connect(to: "localhost:\(port)", tls: client), timeout: patience)
        try hang(connection.write("question\n"), timeout: patience)
        expectEqual(try hang(connection.readLine(), timeout: patience), "answer")
        let rest = connection.readLine()
        if isOrderly {
            expect(try hang(rest, timeout: patience) == nil)
        } else {
            expect(try error(of: rest) as? ConnectionFilterError == .truncated)
        }
        hang(connection.close(linger: .zero))
        end(child)
    }
}
#endif
