import CLinux

/// Unix addresses as text and as the kernel stores them.
struct UnixSocketPathTests {
    private static let longest = String(repeating: "a", count: 107)

    @Test(arguments: [
        "unix:/run/service.sock", "unix:relative", "unix:./@name", "unix:@name", "unix:@/looks/like/a/path", "unix:@@",
        "unix:\u{301}combining", "unix:@\u{301}combining", "unix:/mit/ümlaut 🙂", "unix:/with:colon:80",
        "unix:\(longest)", "unix:@\(longest)",
    ])
    func itReadsAndWrites(text: String) throws {
        var address = try SocketAddress(text)
        address.port = 80
        expectEqual(address.description, text)
        expectEqual(try SocketAddress(address.description), address)
        expect(address.isUnix && !address.isIPv6 && address.family == AF_UNIX)
        expectEqual(address.port, 0)
        expectEqual((address.unixPath == nil), text.utf8.starts(with: "unix:@".utf8))
        expectEqual(address.unixPath ?? address.hostText, address.hostText)
        expectEqual("unix:\(address.hostText)", text)
        expectEqual(SocketAddress(address.storage), address)
    }

    @Test(arguments: [
        ("unix:", "the path is empty"), ("unix:@", "the abstract name is empty"),
        ("unix:/a\u{0}b", "the path contains a zero byte"), ("unix:@a\u{0}", "the abstract name contains a zero byte"),
        ("unix:\(longest)a", "the path has 108 bytes; a Unix address takes 107"),
        ("unix:@\(longest)ü", "the abstract name has 109 bytes; a Unix address takes 107"),
    ])
    func itRefusesWithAReason(text: String, reason: String) {
        let error = #expect(throws: SocketAddress.ParseError.self) { try SocketAddress(text) }
        expectEqual(error?.text, text)
        expectEqual(error?.reason, reason)
    }

    @Test func aPathThatBeginsWithAnAtIsTheSameFile() throws {
        let address = try SocketAddress(unixPath: "@name")
        expectEqual(address.description, "unix:./@name")
        expectEqual(try SocketAddress(unixPath: "./@name"), address)
        expect(try SocketAddress(abstract: "name") != address)
    }

    /// A peer may bind one without a terminating zero, which could not be passed back to the kernel.
    @Test(arguments: [
        (String(repeating: "a", count: 107), true), (String(repeating: "a", count: 108), false),
        ("@" + String(repeating: "a", count: 104), true), ("@" + String(repeating: "a", count: 105), false),
    ])
    func aNameThatFillsTheField(path: String, isTaken: Bool) {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &storage) { bytes in
            for (index, byte) in path.utf8.enumerated() { bytes[2 + index] = byte }
        }
        let address = SocketAddress(storage)
        expectEqual((address != nil), isTaken)
        if let address { expectEqual(SocketAddress(address.storage), address) }
    }

    /// Every connection stores one.
    @Test func itIsThreeWordsLarge() {
        expect(MemoryLayout<SocketAddress?>.size <= 24)
    }

    /// A peer chooses the name of its socket, and all of it is printed.
    @Test(arguments: [
        ("x\nLOG forged 200", "unix:@x\\nLOG forged 200"), ("\u{1B}[2J\r", "unix:@\\u{1B}[2J\\r"),
        ("\u{7F}\u{9B}", "unix:@\\u{7F}\\u{9B}"), ("a\u{2028}b\u{202E}c", "unix:@a\\u{2028}b\\u{202E}c"),
        ("tab\tü é", "unix:@tab\\tü é"),
    ])
    func aNameIsPrintedInOneLine(name: String, text: String) throws {
        let address = try SocketAddress(abstract: name)
        expectEqual(address.description, text)
        expectEqual("unix:\(address.hostText)", text)
        expectEqual("\(SystemError(.connect, EPERM, detail: "unix:@\(name)"))".contains(text), true)
        let error = #expect(throws: SocketAddress.ParseError.self) { try SocketAddress("\(name)") }
        expectEqual(error?.description.contains(text.dropFirst(6)), true)
    }
}
