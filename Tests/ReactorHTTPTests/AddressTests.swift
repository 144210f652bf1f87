/// Addresses for the client, and the texts of their errors.
struct AddressTests {
    @Test(
        .inRealTime,
        arguments: [
            ("", "neither"), ("x", "neither"), ("/x", "neither"), ("ftp://x/", "neither"), ("http:", "neither"),
            ("http:x", "neither"), ("http:/x", "neither"), ("http://", "no host"), ("http:///x", "no host"),
            ("http://:80/", "is no host"), ("http://a b/", "the byte %20 must be escaped"),
            ("http://a/é", "the byte %C3 must be escaped"), ("http://u@x/", "Authorization"),
            ("http://x:y/", "the port"), ("http://x:99999/", "the port"), ("http://x:+1/", "the port"),
            ("http://a!b/", "'a!b'"), ("http://[::1/", "'[::1' is no host"), ("http://[x]/", "is no host"),
            ("http://127.1/", "'127.1'"), ("http://-a/x?y", "'-a'"), ("http://a..b/", "nor the name of a host"),
            // No accounts, which are hidden.
            ("http://h/a@b c", "%20"), ("http://h:80/x@y z", "%20"), ("http://h /?a@b", "%20"),
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
