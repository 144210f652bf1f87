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
    }

    @Test(arguments: [
        "", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1: 1",
        "127.0.0.1:1 ", "127.0.0.1:http", "127.0.0.1:٣", "127.0.0.1:\u{301}1", "127.0.0.1:1\u{301}", " 127.0.0.1:1",
        "256.0.0.1:1", "1.2.3:4", "1.2.3.4.5:6",
        "0x7f.0.0.1:1", "::1:80", "::1", "[::1]", "[::1]80", "[::1:80", "::1]:80", "[]:80", "[127.0.0.1]:80",
        "[localhost]:80", "[::1%]:80", "[::1%+1]:80", "[::1%-1]:80", "[::1%\u{301}1]:80", "[::1%no-such-interface]:80",
        "[fe80::1%0]:80", "[:::1]:80", "[12345::]:80",
        "example.com:80",
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

    @Test func theReasonNamesWhatIsWrong() {
        func reason(_ text: String) -> String {
            do throws(SocketAddress.ParseError) {
                return try SocketAddress(text).description
            } catch {
                return error.reason
            }
        }
        expect(reason("127.0.0.1").contains("the port is missing"))
        expect(reason("127.0.0.1:65536").contains("65535"))
        expect(reason("::1:80").contains("brackets"))
        for text in ["example.com:80", "[127.0.0.1]:80", "a b:80"] {
            expect(reason(text).hasSuffix(", and names are not looked up"))
        }
        expect(reason("example.com:80").contains("example.com"))
    }

    @Test(arguments: ["127.0.0.1:7000", "[2001:db8::1]:443", "[fe80::1%1]:9"])
    func itSurvivesTheWayThroughTheKernelsForm(text: String) throws {
        let address = try SocketAddress(text)
        var storage = sockaddr_storage()
        let size = address.withSocketAddress { pointer, length in
            withUnsafeMutableBytes(of: &storage) {
                $0.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: Int(length)))
            }
            return Int(length)
        }
        expectEqual(CInt(storage.ss_family), address.family)
        expectEqual(size, (address.isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size))
        expectEqual(SocketAddress(storage), address)
    }

    @Test func anotherFamilyIsNoAddress() {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        expectEqual(SocketAddress(storage), nil)
        expectEqual(SocketAddress(sockaddr_storage()), nil)
    }

    @Test func equalAddressesAreOneInASet() throws {
        let equal = [["127.0.0.1:1", "localhost:1"], ["127.0.0.1:2"], ["[::1]:1", "[0:0::1]:1"], ["[fe80::1%1]:1"]]
        let addresses = try Set(equal.joined().map { try SocketAddress($0) })
        expectEqual(addresses.count, equal.count)
    }
}
