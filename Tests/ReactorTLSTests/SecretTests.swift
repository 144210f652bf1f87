#if TLS
/// Traces of a key or its file in memory after it is released. In separate processes, whose memory is searched.
struct SecretTests {
    @Test(.ownThread) func noBytesOfAKeyRemain() async {
        await #expect(processExitsWith: .success) {
            let needle = Needle(80)
            let folder = CertificateFolder()
            let path = "\(folder.path)/key"
            needle.write(to: path)
            do {
                let key = try TLSTicketKey(file: path)
                precondition(needle.copies == 1, "a key that is used is there")
                withExtendedLifetime(key) {}
            }
            precondition(needle.copies == 0, "a ticket key")
            // Both files are read, and the chain is parsed first.
            _ = try? TLSIdentity(certificateChainFile: "/dev/null", privateKeyFile: path)
            precondition(needle.copies == 0, "the file of an identity")
            let long = Needle(100_000)
            long.write(to: path)
            _ = try? TLSIdentity(certificateChainFile: "/dev/null", privateKeyFile: path)
            precondition(long.copies == 0, "a long file")
        }
    }
}

/// Bytes to search for in the memory of the process; this copy does not count.
private final class Needle {
    private let bytes: UnsafeMutableRawBufferPointer

    init(_ count: Int) {
        bytes = .allocate(byteCount: count, alignment: 16)
        var dice = SplitMix64(UInt64(count))
        for index in 0..<count { bytes[index] = UInt8(truncatingIfNeeded: dice.next()) }
    }

    deinit { bytes.deallocate() }

    func write(to path: String) {
        let fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(Glibc.write(fd, bytes.baseAddress, bytes.count) == bytes.count)
        close(fd)
    }

    /// The number of other places with some 32 of the bytes, after those that malloc itself writes into freed memory.
    var copies: Int {
        let (part, size, first) = (bytes.baseAddress! + 32, 32, bytes[32])
        var (count, own) = (0, 0)
        let maps = fopen("/proc/self/maps", "re")!
        defer { fclose(maps) }
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, CInt(line.count), maps) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            let fields = text.split(separator: " ")
            // Readable and writable memory: no code, no devices.
            guard fields[1].hasPrefix("rw"), fields.last?.hasPrefix("[vv") == false else { continue }
            let bounds = fields[0].split(separator: "-").compactMap { Int($0, radix: 16) }
            for run in Self.readable(bounds[0]..<bounds[1]) {
                guard var place = UnsafeRawPointer(bitPattern: run.lowerBound) else { continue }
                let end = place + run.count
                while let hit = memchr(place, CInt(first), end - place).map({ UnsafeRawPointer($0) }), end - hit >= size
                {
                    if hit == part { own += 1 } else if memcmp(hit, part, size) == 0 { count += 1 }
                    place = hit + 1
                }
            }
        }
        precondition(own == 1, "the search finds nothing")
        return count
    }

    /// The parts that can be read: a stack of glibc 2.42 has guard pages that the kernel's list does not show.
    private static func readable(_ region: Range<Int>) -> [Range<Int>] {
        let (memory, page) = (open("/proc/self/mem", O_RDONLY | O_CLOEXEC), Int(sysconf(Int32(_SC_PAGESIZE))))
        defer { close(memory) }
        var (runs, byte, isInRun) = ([Range<Int>](), UInt8(0), false)
        for start in stride(from: region.lowerBound, to: region.upperBound, by: page) {
            let isReadable = pread(memory, &byte, 1, start) == 1
            if isReadable { runs.append((isInRun ? runs.removeLast().lowerBound : start)..<start + page) }
            isInRun = isReadable
        }
        return runs
    }
}
#endif
