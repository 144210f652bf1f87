/// A process that was started with closed standard streams writes to whatever has their numbers.
struct StandardStreamTests {
    /// Each way in which the library creates descriptors.
    private static func make(_ calls: Syscalls = Syscalls()) -> [(name: String, make: () -> [Int])] {
        func one(_ make: @escaping () -> Int) -> () -> [Int] { { [make()] } }
        func two(_ make: @escaping (UnsafeMutablePointer<CInt>) -> Int) -> () -> [Int] {
            {
                var ends: [CInt] = [-1, -1]
                return make(&ends) == 0 ? ends.map(Int.init) : [-1]
            }
        }
        let stream = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        return [
            ("epollCreate", one(calls.epollCreate)), ("eventCreate", one(calls.eventCreate)),
            ("timerCreate", one(calls.timerCreate)), ("socket", one { calls.socket(AF_UNIX, stream) }),
            ("open", one { calls.open("/dev/zero", O_RDONLY, 0) }), ("pidfdOpen", one { calls.pidfdOpen(getpid()) }),
            ("file", one { FileSyscalls().open("/dev/zero", O_RDONLY, 0) }),
            ("pipe", two(calls.pipe)), ("socketPair", two(calls.socketPair)),
            ("accept", one { Self.accept(calls) }),
        ]
    }

    /// The result of accept4(2) for a client of a socket of this process.
    private static func accept(_ calls: Syscalls) -> Int {
        func high(_ fd: CInt) -> CInt {
            defer { close(fd) }
            return fcntl(fd, F_DUPFD_CLOEXEC, 20)
        }
        let listener = high(socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        let client = high(socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        defer {
            close(listener)
            close(client)
        }
        listen(listener, 1)
        var (address, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        return withUnsafeMutablePointer(to: &address) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(listener, $0, &length)
                precondition(connect(client, $0, length) == 0)
            }
            return calls.accept(listener, storage)
        }
    }

    @Test(.ownThread) func noDescriptorOfTheLibraryIsOneOfThem() async {
        await #expect(processExitsWith: .success) {
            let saved = (CInt(0)...2).map { fcntl($0, F_DUPFD_CLOEXEC, 10) }
            for (name, make) in StandardStreamTests.make() {
                for closed in [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]] as [[CInt]] {
                    for fd in closed { close(fd) }
                    let made = make()
                    // Descriptors opened next by other code get none of the numbers either.
                    let next = open("/dev/zero", O_RDONLY)
                    for (fd, original) in zip(CInt(0)..., saved) { dup2(original, fd) }
                    precondition(made.allSatisfy { $0 > 2 }, "\(name) without \(closed): \(made)")
                    precondition(next > 2, "\(name) without \(closed): \(next)")
                    for fd in made.map(CInt.init) {
                        precondition(fcntl(fd, F_GETFD) == FD_CLOEXEC, name)
                        close(fd)
                    }
                    close(next)
                }
            }
            // A log line of a process without standard error reaches none of its peers.
            close(2)
            var ends: [CInt] = [-1, -1]
            let paired = Syscalls().socketPair(&ends)
            LineWriter.standardError.write("the promise made at …")
            dup2(saved[2], 2)
            precondition(paired == 0)
            var byte: UInt8 = 0
            for end in ends { precondition(recv(end, &byte, 1, CInt(MSG_DONTWAIT)) < 0 && errno == EAGAIN) }
            // Without a descriptor to move to, the call fails, and nothing remains open.
            dup2(saved[0], 3)
            close(0)
            var limit = rlimit(rlim_cur: 4, rlim_max: 100)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let made = Syscalls().eventCreate()
            limit.rlim_cur = 100
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let isClosed = fcntl(0, F_GETFD) < 0
            dup2(saved[0], 0)
            precondition(made == -Int(EMFILE) && isClosed, "\(made)")
            // Of two ends one can stay where it is, and is closed with the other.
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            var last: CInt = -1
            while case let next = dup(saved[0]), next >= 0 { last = next }
            close(last)
            close(0)
            let pair = Syscalls().pipe(&ends)
            let areClosed = fcntl(last, F_GETFD) < 0 && fcntl(0, F_GETFD) < 0
            dup2(saved[1], 0)
            precondition(pair == -Int(EMFILE) && areClosed, "\(pair)")
        }
    }
}
