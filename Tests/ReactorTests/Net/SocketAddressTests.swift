/// Addresses as text and as the kernel stores them.
struct SocketAddressTests {
    @Test(arguments: [
        ("127.0.0.1:7000", "127.0.0.1:7000"), ("0.0.0.0:0", "0.0.0.0:0"),
        ("255.255.255.255:65535", "255.255.255.255:65535"), ("localhost:80", "127.0.0.1:80"),
        ("[::1]:7000", "[::1]:7000"), ("[::]:1", "[::]:1"),
        ("[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443"), ("[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5"),
        ("[fe80::1%1]:9", "[fe80::1%1]:9"), ("[fe80::1%lo]:9", "[fe80::1%\(if_nametoindex("lo"))]:9"),
        ("10.0.0.1:007", "10.0.0.1:7"),
    ])
    func itReadsAndWrites(text: String, standard: String) throws {
        let address = try SocketAddress(text)
        expectEqual(address.description, standard)
        expectEqual(try SocketAddress(standard), address)
        expectEqual(address.isIPv6, text.contains("["))
        var storage = sockaddr_storage()
        let size = address.store(in: &storage)
        expectEqual(CInt(storage.ss_family), address.family)
        expectEqual(Int(size), address.isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
        expectEqual(SocketAddress(storage), address)
    }

    @Test(arguments: [
        "", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1: 1",
        "127.0.0.1:1 ", "127.0.0.1:http", "127.0.0.1:٣", "127.0.0.1:\u{301}1", "127.0.0.1:1\u{301}", " 127.0.0.1:1",
        "256.0.0.1:1", "1.2.3:4", "1.2.3.4.5:6", "0x7f.0.0.1:1", "::1:80", "::1", "[::1]", "[::1]80", "[::1:80",
        "::1]:80", "[]:80", "[127.0.0.1]:80",
        "[localhost]:80", "[::1%]:80", "[::1%+1]:80", "[::1%-1]:80", "[::1%\u{301}1]:80", "[::1%no-such-interface]:80",
        "[fe80::1%0]:80", "[:::1]:80", "[12345::]:80", "example.com:80",
    ])
    func itRefusesWithAReason(text: String) throws {
        let error = #expect(throws: SocketAddress.ParseError.self) { try SocketAddress(text) }
        expectEqual(error?.text, text)
        expectEqual(error?.reason.isEmpty, false)
        expectEqual(error?.description.hasPrefix("'\(text)' is not an address: "), true)
    }

    @Test func nothingHidesBehindAZeroByte() {
        #expect(throws: SocketAddress.ParseError.self) { try SocketAddress("127.0.0.1\u{0}.example.com:80") }
        expectEqual(SocketAddress(host: "::1\u{0}", port: 80), nil)
        expectEqual(SocketAddress(host: "fe80::1%lo\u{0}", port: 80), nil)
    }

    @Test(arguments: [
        ("7000", "the port is missing; write HOST:PORT"), ("", "the port is missing; write HOST:PORT"),
        ("127.0.0.1:", "the port '' is not a number from 0 to 65535"),
        ("127.0.0.1:65536", "the port '65536' is not a number from 0 to 65535"),
        ("http://127.0.0.1:80", "write HOST:PORT, without 'http://' and without a path"),
        ("https://example.com/a:b", "write HOST:PORT, without 'https://' and without a path"),
        ("tcp://[::1]:7000", "write HOST:PORT, without 'tcp://' and without a path"),
        ("::1:7000", "write an IPv6 address in brackets, as [::1]:7000"),
        ("[127.0.0.1]:1", "'127.0.0.1' is neither an IPv4 nor an IPv6 address, and names are not looked up"),
        ("example.com:80", "'example.com' is neither an IPv4 nor an IPv6 address, and names are not looked up"),
    ])
    func theReasonNamesWhatIsWrong(text: String, reason: String) {
        let error = #expect(throws: SocketAddress.ParseError.self) { try SocketAddress(text) }
        expectEqual(error?.reason, reason)
    }

    @Test func anotherFamilyIsNoAddress() {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        expectEqual(SocketAddress(storage), nil)
        expectEqual(SocketAddress(sockaddr_storage()), nil)
    }
}
