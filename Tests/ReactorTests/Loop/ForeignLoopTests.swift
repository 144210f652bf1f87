import CLinux

/// Other event loops that embed ours, and their descriptors in ours.
struct ForeignLoopTests {
    private let loop = EventLoop.current

    /// The work of a server: timers, a socket, mail, until each has come a number of times.
    private final class Work {
        let loop: EventLoop
        let ends = Ends.sockets()
        let mail = Counter()
        var ticks = 0
        var bytes = 0
        private var timer: EventLoop.Timer?
        private var watch: EventLoop.Watch?
        static var rounds: Int { 20 }

        init(_ loop: EventLoop) throws {
            self.loop = loop
            timer = loop.schedule(every: .milliseconds(1)) { [unowned self] in
                ticks += 1
                put(into: ends.far)
            }
            watch = try loop.watch(ends.near, for: .reading) { [unowned self] _ in
                bytes += take(from: ends.near)
                // A job, and a timer that is started in a turn.
                loop.enqueue { loop.schedule(after: .microseconds(100)) {} }
            }
        }

        var isDone: Bool { ticks >= Self.rounds && bytes >= Self.rounds && mail.value == Self.rounds }

        func sendMail() -> TestThread {
            let remote = loop.remote
            let mail = mail
            return TestThread { for _ in 0..<Work.rounds { remote.submit { mail.add() } } }
        }

        func end() {
            timer?.cancel()
            watch?.cancel()
        }
    }

    @Test(.inRealTime) func pollCarriesOursByDescriptorAndDeadline() throws {
        let work = try Work(loop)
        var entry = pollfd(fd: try loop.fileDescriptor, events: Int16(POLLIN), revents: 0)
        let helper = work.sendMail()
        var waits = 0
        while !work.isDone && waits < 5000 {
            repeat { try loop.turn(.poll) } while loop.isReady
            var patience: CInt = 10_000
            if let deadline = loop.nextDeadline {
                let left = loop.now.duration(to: deadline).components
                patience = CInt(max(left.attoseconds / 1_000_000_000_000_000 + 1, 0)) + CInt(left.seconds * 1000)
            }
            waits += 1
            poll(&entry, 1, patience)
        }
        helper.join()
        expect(work.isDone)
        expect(waits < 1000, "it spins")
        work.end()
    }

    @Test(.inRealTime, .enabled(if: UV.isHere, "libuv.so.1 is not installed")) func libuvCarriesOurs() throws {
        let uv = try #require(UV())
        let loop = EventLoop.current
        let work = try Work(loop)
        let fd = try loop.fileDescriptor
        repeat { try loop.turn(.poll) } while loop.isReady
        let helper = work.sendMail()
        var calls = 0
        uv.run(watching: fd, atMost: 20_000) {
            calls += 1
            repeat { try! loop.turn(.poll) } while loop.isReady
            return !work.isDone
        }
        helper.join()
        expect(work.isDone)
        expect(calls < 1000, "it spins")
        work.end()
    }

    @Test(.inRealTime) func aForeignEpollIsADescriptorLikeOthers() throws {
        let foreign = epoll_create1(CInt(O_CLOEXEC))
        defer { close(foreign) }
        let pipe = Ends.pipe()
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = pipe.near
        expectEqual(epoll_ctl(foreign, EPOLL_CTL_ADD, pipe.near, &event), 0)
        var heard = 0
        let watch = try loop.watch(foreign, for: .reading) { _ in
            var events = epoll_event()
            expectEqual(epoll_wait(foreign, &events, 1, 0), 1)
            expectEqual(events.data.fd, pipe.near)
            heard += take(from: pipe.near)
        }
        for round in 1...3 {
            loop.schedule(after: .milliseconds(1)) { put(into: pipe.far) }
            try loop.drive { heard == round }
        }
        try loop.turn(.poll)
        expectEqual(heard, 3)
        watch.cancel()
    }
}

/// libuv, found at run time: building the tests does not need it.
private final class UV {
    private typealias PollCallback = @convention(c) (UnsafeMutableRawPointer, CInt, CInt) -> Void
    private typealias TimerCallback = @convention(c) (UnsafeMutableRawPointer) -> Void
    private let library: UnsafeMutableRawPointer

    static var isHere: Bool { dlopen("libuv.so.1", RTLD_NOW) != nil }

    init?() {
        guard let library = dlopen("libuv.so.1", RTLD_NOW) else { return nil }
        self.library = library
    }

    private func function<Function>(_ name: String, _ type: Function.Type) -> Function {
        unsafeBitCast(dlsym(library, name)!, to: type)
    }

    private final class Context {
        let body: () -> Bool
        let stop: () -> Void

        init(_ body: @escaping () -> Bool, _ stop: @escaping () -> Void) {
            self.body = body
            self.stop = stop
        }
    }

    /// Calls `body` whenever `fd` is readable, until it returns false or the time is over.
    func run(watching fd: CInt, atMost milliseconds: UInt64, _ body: @escaping () -> Bool) {
        typealias Handle = UnsafeMutableRawPointer
        let size = function("uv_loop_size", (@convention(c) () -> Int).self)()
        let handleSize = function("uv_handle_size", (@convention(c) (CInt) -> Int).self)
        // UV_POLL and UV_TIMER of uv.h; both begin with a user pointer.
        let loop = Handle.allocate(byteCount: size, alignment: 16)
        let poll = Handle.allocate(byteCount: handleSize(8), alignment: 16)
        let timer = Handle.allocate(byteCount: handleSize(13), alignment: 16)
        defer { for memory in [loop, poll, timer] { memory.deallocate() } }
        let close = function("uv_close", (@convention(c) (Handle, Handle?) -> Void).self)
        expectEqual(function("uv_loop_init", (@convention(c) (Handle) -> CInt).self)(loop), 0)
        expectEqual(function("uv_poll_init", (@convention(c) (Handle, Handle, CInt) -> CInt).self)(loop, poll, fd), 0)
        expectEqual(function("uv_timer_init", (@convention(c) (Handle, Handle) -> CInt).self)(loop, timer), 0)
        let context = Context(body) {
            close(poll, nil)
            close(timer, nil)
        }
        for handle in [poll, timer] {
            handle.storeBytes(of: Unmanaged.passUnretained(context).toOpaque(), as: Handle.self)
        }
        let whenReadable: PollCallback = { handle, _, _ in
            let context = Unmanaged<Context>.fromOpaque(handle.load(as: Handle.self)).takeUnretainedValue()
            if !context.body() { context.stop() }
        }
        let whenLate: TimerCallback = { handle in
            Unmanaged<Context>.fromOpaque(handle.load(as: Handle.self)).takeUnretainedValue().stop()
        }
        let start = function("uv_poll_start", (@convention(c) (Handle, CInt, PollCallback) -> CInt).self)
        expectEqual(start(poll, 1, whenReadable), 0)
        let startTimer = function(
            "uv_timer_start", (@convention(c) (Handle, TimerCallback, UInt64, UInt64) -> CInt).self)
        expectEqual(startTimer(timer, whenLate, milliseconds, 0), 0)
        withExtendedLifetime(context) {
            expectEqual(function("uv_run", (@convention(c) (Handle, CInt) -> CInt).self)(loop, 0), 0)
        }
        expectEqual(function("uv_loop_close", (@convention(c) (Handle) -> CInt).self)(loop), 0)
    }
}
