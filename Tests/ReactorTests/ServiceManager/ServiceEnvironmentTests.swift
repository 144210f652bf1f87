/// The environment that a service manager passes, and the messages to it.
struct ServiceEnvironmentTests {
    private func environment(_ variables: [String: String], process: pid_t = 7, first: CInt = 3) -> ServiceEnvironment {
        ServiceEnvironment(process: process, firstDescriptor: first) { variables[$0] }
    }

    // MARK: Notifying the manager

    private func receiver(_ address: SocketAddress) -> CInt {
        let fd = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        let result = address.withSocketAddress { bind(fd, $0, $1) }
        expectEqual(result, 0)
        return fd
    }

    @Test(arguments: [true, false]) func oneDatagramTellsTheManager(isAbstract: Bool) throws {
        let name = "reactor-notify-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let place = isAbstract ? "@\(name)" : "/tmp/\(name)"
        let fd = receiver(try SocketAddress("unix:\(place)"))
        defer {
            close(fd)
            if !isAbstract { unlink(place) }
        }
        let states: [ServiceManager.State] = [
            .ready, .status("two\nlines"), .other("MAINPID=\(12)"), .other("X_OWN=1"),
        ]
        let isNotified = try ServiceManager.notify(states, environment(["NOTIFY_SOCKET": place]))
        expect(isNotified)
        expectEqual(text(from: fd), "READY=1\nSTATUS=two lines\nMAINPID=12\nX_OWN=1")
        expectEqual(text(from: fd), "")
        expectEqual(ServiceManager.State.stopping.text, "STOPPING=1")
        expectEqual(ServiceManager.State.watchdog.text, "WATCHDOG=1")
    }

    /// Code that closes descriptors that are not its own, as some daemons do at their start, may close the one for the
    /// manager.
    @Test(.ownThread) func aDescriptorThatOtherCodeHasClosedIsOpenedAgain() async {
        await #expect(processExitsWith: .success) {
            let name = "@reactor-notify-\(getpid())-\(UInt64.random(in: 0 ... .max))"
            let manager = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            let isBound = try SocketAddress("unix:\(name)").withSocketAddress { bind(manager, $0, $1) } == 0
            setenv("NOTIFY_SOCKET", name, 1)
            func isNotified() throws -> Bool { try ServiceManager.notify(.ready) && text(from: manager) == "READY=1" }
            let before = (0..<1024).map { fcntl($0, F_GETFD) }
            let first = try isNotified()
            // Swift's runtime may have opened another one meanwhile.
            func isOfDatagrams(_ fd: CInt) -> Bool {
                var (type, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
                return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM.rawValue
            }
            guard let kept = (0..<1024).first(where: { before[Int($0)] < 0 && isOfDatagrams($0) }) else {
                preconditionFailure("it is not kept")
            }
            // Afterwards the number of the kept descriptor belongs to another file, which must not be touched.
            let pipe = Ends.pipe()
            dup2(pipe.far, kept)
            let second = try isNotified()
            precondition(isBound && first && second)
            precondition(take(from: pipe.near) == -Int(EAGAIN), "the note went into another file")
            put(into: kept)
        }
    }

    @Test func withoutAManagerNothingHappens() throws {
        for variables in [[:], ["NOTIFY_SOCKET": ""]] {
            let isNotified = try ServiceManager.notify([.ready], environment(variables))
            expect(!isNotified)
        }
    }

    @Test(arguments: [
        ("vsock:2:1", EINVAL), ("relative", EINVAL), ("/nowhere/at/all", ENOENT),
        ("@reactor-nobody-there", ECONNREFUSED),
    ])
    func aManagerThatCannotBeReachedIsAnError(place: String, code: CInt) {
        let error = #expect(throws: SystemError.self) {
            try ServiceManager.notify([.ready], environment(["NOTIFY_SOCKET": place]))
        }
        expectEqual(error?.code, code)
    }

    // MARK: The watchdog

    @Test func theWatchdogIsForThisProcessOnly() {
        func interval(_ variables: [String: String]) -> Duration? {
            ServiceManager.watchdogInterval(environment(variables))
        }
        expectEqual(interval(["WATCHDOG_USEC": "30000000"]), .seconds(30))
        expectEqual(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"]), .seconds(30))
        expectEqual(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"]), nil)
        for text in ["", "0", "-1", "+1", " 1", "x", "99999999999999999999"] {
            expectEqual(interval(["WATCHDOG_USEC": text]), nil, text)
        }
        expectEqual(interval([:]), nil)
    }

    // MARK: Descriptors

    @Test func descriptorsAreNumberedFromTheFirstAndNamed() throws {
        let ends = Ends.pipe()
        _ = fcntl(ends.near, F_SETFD, 0)
        let variables = ["LISTEN_PID": "7", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "web:\u{301}more"]
        let found = try ServiceManager.descriptors(environment(variables, first: ends.near), CountingSyscalls())
        expectEqual(found.map(\.number), [ends.near])
        expectEqual(found.map(\.name), ["web"])
        expect(fcntl(ends.near, F_GETFD) & FD_CLOEXEC != 0)
        let nameless = try ServiceManager.descriptors(
            environment(["LISTEN_PID": "7", "LISTEN_FDS": "1"], first: ends.near), CountingSyscalls())
        expectEqual(nameless.map(\.name), ["unknown"])
    }

    @Test func thoseOfAnotherProcessAreNotOurs() throws {
        for variables in [[:], ["LISTEN_FDS": "1"], ["LISTEN_PID": "8", "LISTEN_FDS": "1"]] {
            let found = try ServiceManager.descriptors(environment(variables), CountingSyscalls())
            expect(found.isEmpty)
        }
    }

    @Test func variablesThatMakeNoSenseAndDescriptorsThatAreNotOpenAreNamed() {
        for (process, count, code, detail) in [
            ("7", "-1", EINVAL, "LISTEN_FDS='-1'"), ("7", "+1", EINVAL, "LISTEN_FDS='+1'"),
            ("7", "x", EINVAL, "LISTEN_FDS='x'"), ("7", "70000", EINVAL, "LISTEN_FDS='70000'"),
            ("x", "1", EINVAL, "LISTEN_PID='x'"), ("+7", "1", EINVAL, "LISTEN_PID='+7'"),
            ("7", "1", EBADF, "descriptor 1000000 of LISTEN_FDS"),
        ] {
            let its = environment(["LISTEN_PID": process, "LISTEN_FDS": count], first: 1_000_000)
            let error = failure { _ = try ServiceManager.descriptors(its, CountingSyscalls()) } as? SystemError
            expectEqual(error, SystemError(.fileControl, code))
            expectEqual(error?.detail, detail)
        }
    }
}
