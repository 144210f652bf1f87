@testable import ReactorHTTP

/// Addresses for the client, and the texts of their errors.
struct AddressTests {
    @Test(
        .inRealTime,
        arguments: [
            ("", "neither"), ("x", "neither"), ("/x", "neither"), ("ftp://x/", "neither"), ("http:", "neither"),
            ("http:x", "neither"), ("http:/x", "neither"), ("http://", "no host"), ("http:///x", "no host"),
            ("http://:80/", "no host"), ("http://a b/", "nor the name of a host"),
            ("http://a/é", "the byte %C3 must be escaped"), ("http://u@x/", "Authorization"),
            ("http://x:y/", "the port"), ("http://x:99999/", "the port"), ("http://x:+1/", "the port"),
            ("http://a!b/", "'a!b'"), ("http://[::1/", "'[::1' is neither"), ("http://[x]/", "'x' is neither"),
            ("http://[::1]x/", "'[::1]x'"), ("http://[]/", "''"), ("http://[127.0.0.1]/", "'127.0.0.1' is neither"),
            ("http://[::1%25no-such-interface]/", "'::1%no-such-interface'"), ("http://[::1%]/", "'::1"),
            // For getaddrinfo(3) these are addresses.
            ("http://0x7f000001/", "'0x7f000001'"), ("http://0x7F.1/", "'0x7F.1'"), ("http://2130706433/", "'2"),
            ("http://0177.0.0.1/", "'0177.0.0.1'"), ("http://127.0.0.0x1/", "'127.0.0.0x1'"), ("http://0x/", "'0x'"),
            ("http://127.0.0.1./", "'127.0.0.1.'"), ("http://1/", "'1'"), ("http://a.0X7f./", "'a.0X7f.'"),
            // Not an advice that leads to the next refusal.
            ("http://bücher.example/", "write an international name in ASCII, as xn--bcher-kva.example"),
            ("http://b%C3%BCcher.example/", "write an international name in ASCII, as xn--bcher-kva.example"),
            ("http://127.1/", "'127.1'"), ("http://-a/x?y", "'-a'"), ("http://a..b/", "nor the name of a host"),
            // No accounts, which are hidden.
            ("http://h/a@b c", "%20"), ("http://h:80/x@y z", "%20"), ("http://h /?a@b", "'h '"),
        ])
    func badAddressesAreRefusedWithAReason(_ text: String, _ reason: String) {
        let error = #expect(throws: FetchError.self) { _ = try hang(fetch(text), timeout: patience) }
        guard case .badAddress(let shown, let why)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        expectEqual(shown, text.replacing("u@", with: "***@"))
        expect(why.contains(reason), why)
        expect("\(error!)".hasPrefix("'\(shown)' is not an address of HTTP: "))
    }

    /// The lookup is asked about each address, which it sees in the one form that is connected to.
    private struct Guard: NameLookup {
        let seen = LockedValue<[String]>([])
        let found: [SocketAddress]
        func addresses(of host: String, port: UInt16) -> Promise<[SocketAddress]> { .value(found) }
        func allows(_ address: SocketAddress) -> Bool {
            seen.withLock { $0.append("\(address)") }
            return address == found.first
        }
    }

    @Test(
        .served,
        arguments: [
            ("10.0.0.1", ["10.0.0.1:80"]), ("169.254.169.254:81", ["169.254.169.254:81"]), ("[::1]", ["[::1]:80"]),
            ("[0:0::1]:8", ["[::1]:8"]), ("[::FFFF:10.0.0.1]", ["[::ffff:10.0.0.1]:80"]),
            ("localhost", ["[::1]:80", "127.0.0.1:80"]), ("a.LOCALHOST.", ["[::1]:80", "127.0.0.1:80"]),
            // RFC 6874, and the form of curl(1) and of `connect`.
            ("[fe80::1%25lo]", ["[fe80::1%LO]:80"]), ("[fe80::1%lo]", ["[fe80::1%LO]:80"]),
            ("[FE80::1%2577]:8", ["[fe80::1%77]:8"]), ("[fe80::1%25]", ["[fe80::1%25]:80"]),
        ])
    func noAddressIsConnectedToUnlessTheLookupAllowsIt(_ host: String, _ addresses: [String]) throws {
        var target = "http://\(host)/"
        try serve { _ in .now(.redirect(to: target)) }
        let names = Guard(found: [address])
        let client = HTTPClient(lookup: names)
        atEnd { client.close() }
        let expected = addresses.map { $0.replacing("LO", with: "\(if_nametoindex("lo"))") }
        // As they are, in a redirect, and as a WebSocket.
        var errors = [target, "http://a.example/"].map { text in
            #expect(throws: (any Error).self) { _ = try hang(client.fetch(text), timeout: patience) }
        }
        target = target.replacing("http:", with: "ws:")
        errors.append(#expect(throws: (any Error).self) { _ = try hang(client.webSocket(target), timeout: patience) })
        for error in errors { expect("\(error!)".contains("which the lookup does not allow")) }
        expectEqual(names.seen.withLock { $0 }, expected + ["\(address)"] + expected + expected)
    }

    /// A client reads the server of an address once. What follows it in the next address may belong to the server.
    @Test func anAddressMeansTheSameAfterEachOther() throws {
        func read(_ text: String, after known: WebOrigin? = nil) -> String {
            do {
                let address = try WebAddress(text, like: known)
                return "\(address.text), \(address.name) by \(address.endpoint), \(address.origin.key)"
            } catch { return "\(error)" }
        }
        let servers = ["http://a", "HTTP://A:8", "https://a", "http://[::1]", "http://[fe80::1%251]:8", "http://a?"]
        let ends = ["", "/", "/x?y", "?x", "#f", "/#f", ":8", "0/", "b/", ".b", "@b/", "]", "/ ", "/é", "?\n", "/@b"]
        for known in try servers.map({ try WebAddress($0).origin }) {
            for text in servers.flatMap({ server in ends.map { server + $0 } }) {
                expectEqual(read(text, after: known), read(text), text)
            }
        }
        let known = try WebAddress("http://a:8/x").origin
        for text in ["http://a:8", "http://a:8?x", "http://a:8/y#f"] {
            expect(try WebAddress(text, like: known).origin === known, text)
        }
    }

    /// A redirect may contain characters that control a terminal.
    @Test func errorsAreOneLine() {
        let text = "http://h/\u{9B}2J\u{2028}\n"
        for error in [.badAddress(text, reason: "x"), .noTLS(text), .redirectLoop(text), .badRequest(text)]
            as [FetchError]
        {
            expect("\(error)".contains("http://h/\\u{9B}2J\\u{2028}\\n"), "\(error)")
        }
    }

    /// Errors are logged.
    @Test(
        .served,
        arguments: [
            "http://user:secret@h/", "https://user:secret@h", "http://secret@h", "http://user:se@cret@h/",
            "ftp://user:secret@h/",
            "user:secret@h/", "http:user:secret@h", "http:/user:secret@h/x", "http://user:se/cret@h/",
            "http://user:se#cret@h/",
            "http://user:se?cret@h/", "http://user:secret@h/ x", "http://user:secret@/", "http://user:secret@h:x/@",
            "HTTP://user:secret\u{301}@h/", "http://user:\u{0}secret@h/",
        ])
    func noErrorNamesAPassword(_ secret: String) throws {
        try serve { _ in .now(.redirect(to: secret)) }
        for text in [secret, "http://\(address)/"] {
            if text != secret && !secret.lowercased().hasPrefix("http") { continue }
            let error = #expect(throws: FetchError.self) { _ = try hang(client.fetch(text), timeout: patience) }
            for form in ["\(error!)", String(reflecting: error!)] {
                expect(!form.contains("cret") && form.contains("***@"), form)
            }
        }
    }
}
