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

    @Test func theBytesOfAnAddressAndBack() throws {
        let cases: [(String, [UInt8])] = [
            ("127.0.0.1:53", [127, 0, 0, 1]), ("255.254.1.0:1", [255, 254, 1, 0]),
            ("[::1]:53", Array(repeating: 0, count: 15) + [1]),
            ("[2001:db8:102:304:506:708:90a:bff]:9", [0x20, 1, 0x0D, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x0B, 0xFF]),
        ]
        for (text, bytes) in cases {
            let address = try SocketAddress(text)
            expectEqual(address.hostBytes, bytes)
            expectEqual(SocketAddress(hostBytes: bytes, port: address.port), address)
            expectEqual(SocketAddress(hostBytes: ([0] + bytes)[1...], port: address.port), address)
        }
        expectEqual(try SocketAddress("[fe80::1%1]:9").hostBytes, try SocketAddress("[fe80::1]:9").hostBytes)
        expectEqual(try SocketAddress("unix:@name").hostBytes, [])
        for count in [0, 1, 3, 5, 15, 17, 300] {
            expectEqual(SocketAddress(hostBytes: Array(repeating: 1, count: count), port: 1), nil)
        }
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

    /// getaddrinfo(3) takes them for addresses.
    @Test(arguments: ["127.1", "1", "0x7f000001", "0X7F.1", "0177.0.0.1", "2130706433", "127.0.0.0x1", "0x", "0x7f."])
    func oddFormsOfIPv4AreNeitherAddressesNorNames(_ host: String) {
        expectEqual(SocketAddress(host: host, port: 80), nil)
        #expect(throws: SocketAddress.ParseError.self) { _ = try ParsedEndpoint("\(host):80") }
        #expect(throws: NameLookupError(host: host, code: EAI_NONAME)) { _ = try SocketAddress.lookUp(host, port: 80) }
    }

    @Test(arguments: ["x0", "0xg", "0x7f.a", "a.0x7f-1", "1a", "0-1.b", "7f", "x.1x"])
    func namesWithNumbersAreNames(_ host: String) throws {
        expectEqual(try ParsedEndpoint("\(host):80"), .host(host, port: 80))
    }

    /// The first and the last address of each range, and their neighbours.
    @Test func addressesOfOtherNetworksAreNotGlobal() throws {
        let v4 =
            [
                ("0.0.0.0", "0.255.255.255"), ("10.0.0.0", "10.255.255.255"), ("100.64.0.0", "100.127.255.255"),
                ("127.0.0.0", "127.255.255.255"), ("169.254.0.0", "169.254.255.255"), ("172.16.0.0", "172.31.255.255"),
                ("192.0.0.0", "192.0.0.255"), ("192.0.2.0", "192.0.2.255"), ("192.88.99.0", "192.88.99.255"),
                ("192.168.0.0", "192.168.255.255"), ("198.18.0.0", "198.19.255.255"),
                ("198.51.100.0", "198.51.100.255"),
                ("203.0.113.0", "203.0.113.255"), ("224.0.0.0", "255.255.255.255"),
            ] as [(String, String)]
        func number(_ text: String) -> UInt32 {
            text.split(separator: ".").reduce(0) { $0 << 8 | UInt32($1)! }
        }
        func text(_ number: UInt32) -> String {
            [24, 16, 8, 0].map { "\(number >> $0 & 255)" }.joined(separator: ".")
        }
        func expect(_ isGlobal: Bool, v4 number: UInt32) throws {
            for form in ["\(text(number))", "[::ffff:\(text(number))]", "[64:ff9b::\(text(number))]"] {
                TestSupport.expect(try SocketAddress("\(form):80").isGlobal == isGlobal, form)
            }
        }
        for (first, last) in v4 {
            for inside in [first, last, "169.254.169.254"] { try expect(false, v4: number(inside)) }
            if first != "0.0.0.0" { try expect(true, v4: number(first) - 1) }
            if last != "255.255.255.255" { try expect(true, v4: number(last) + 1) }
        }
        for local in [
            "::", "::1", "::10.0.0.1", "::ffff:0:1.1.1.1", "64:ff9b:1::1.1.1.1", "100::1", "1fff::", "2001::1",
            "2001:1ff:ffff::", "2001:db8::1", "2001:db8:ffff::", "2002:101:101::", "3fff::", "3fff:fff:ffff::",
            "4000::",
            "5f00::1", "fc00::", "fd12::1", "fe80::1", "fe80::1%lo", "ff02::1",
        ] { TestSupport.expect(try !SocketAddress("[\(local)]:80").isGlobal, local) }
        for global in ["2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2606:4700::1", "3ffe:ffff::"] {
            TestSupport.expect(try SocketAddress("[\(global)]:80").isGlobal, global)
        }
        TestSupport.expect(try !SocketAddress("unix:/x").isGlobal && !SocketAddress("unix:@x").isGlobal)
    }

    @Test func anotherFamilyIsNoAddress() {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        expectEqual(SocketAddress(storage), nil)
        expectEqual(SocketAddress(sockaddr_storage()), nil)
    }
}
