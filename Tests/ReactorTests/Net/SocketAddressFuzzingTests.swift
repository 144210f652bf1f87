/// Any text is an address that can be written and read again, or is refused with a reason.
struct SocketAddressFuzzingTests {
    private static let corpus = [
        "127.0.0.1:7000", "0.0.0.0:0", "255.255.255.255:65535", "localhost:80", "[::1]:7000", "[::]:1",
        "[2001:DB8:0:0:0:0:0:1]:443", "[::ffff:1.2.3.4]:5", "[fe80::1%1]:9", "[fe80::1%lo]:9", "example.com:80",
        "a-b.c_d.example:1", "unix:/run/service.sock", "unix:@name", "unix:./@name", "unix:relative", "", ":", "[]:1",
        "1.2.3:4", "unix:", "unix:@", "[::1%]:80", "xn--nxasmq6b.example.:443",
    ]
    private static let pieces = [
        ":", "::", "[", "]", "%", "@", ".", "-", "/", "unix:", "localhost", "0", "1", "255", "256", "65535", "65536",
        "a", "F", "g", "\u{0}", " ", "\n", "ü", "🙂", "٣", "\u{301}", "+", "0x7f", "%lo", "%0", "%4294967295", "ffff:",
    ]

    @Test(arguments: 0..<8) func itParsesOrSaysWhyNot(seed: Int) throws {
        var dice = SplitMix64(UInt64(seed))
        var parsed = 0
        for _ in 0..<3000 {
            var text = dice.pick(Self.corpus)
            for _ in 0..<dice.below(5) { text = dice.mutated(text, inserting: Self.pieces + Self.corpus) }
            do throws(SocketAddress.ParseError) {
                switch try ParsedEndpoint(text) {
                case .address(let address):
                    parsed += 1
                    // Control characters in the name of a Unix address are escaped.
                    if address.isUnix, text.inOneLine != text { continue }
                    let again = try SocketAddress(address.description)
                    expectEqual(again, address, "\(text.debugDescription)")
                    expectEqual(again.description, address.description)
                    expectEqual(again.hashValue, address.hashValue)
                case .localhost(let port):
                    expectEqual(try SocketAddress(text), .loopback(port: port))
                case .host(let host, let port):
                    expectEqual(try ParsedEndpoint("\(host):\(port)"), .host(host, port: port))
                    expect(!host.utf8.contains(0) && host.utf8.allSatisfy { $0 < 0x80 } && host.utf8.count <= 253)
                    expectEqual((try? SocketAddress(text)), nil)
                }
            } catch {
                expect(error.text == text || text.hasPrefix("unix:"))
                expect(!error.reason.isEmpty)
            }
        }
        expect(parsed > 100, "the mutations leave too little to try")
    }
}
