// Made by .ci/snippets.py from docs/guides/patterns.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import SimulatedNetwork
import Testing

// docs/guides/patterns.md: Chat
extension Snippets {
    static func patterns1() throws {
        final class Room {
            private var members: [ObjectIdentifier: Connection] = [:]

            func join(_ connection: Connection) -> Promise<Void> {
                connection.idleTimeout = .seconds(600)
                connection.writeQueueLimit = 64 << 10
                return connection.readLine(limit: 32).then { name -> Promise<Void> in
                    guard let name else { return .value }
                    self.members[ObjectIdentifier(connection)] = connection
                    self.say("\(name) has joined")
                    return connection.forEachLine(limit: 1024) { line in self.say("\(name): \(line)") }
                        .ensure {
                            self.members[ObjectIdentifier(connection)] = nil
                            self.say("\(name) has left")
                        }
                }
            }

            /// A member that does not read is reset when 64 KiB wait for it, and the others do not notice.
            private func say(_ text: String) { broadcast("\(text)\n".utf8, to: members.values, overflow: .abort) }
        }

        let room = Room()
        let listener = try Listener.bind("127.0.0.1:0")
        listener.serve(ServeOptions(maxConnections: 1000)) { connection in room.join(connection) }
        let (anna, ben) = try hang(when(fulfilled: connect(to: listener.localAddress), connect(to: listener.localAddress)))
        var heard: [String] = []
        let listening = anna.write("Anna\n").then {
            anna.forEachLine { line -> Promise<Void> in
                heard.append(line)
                return heard.count == 1 ? ben.write("Ben\nhello\n").then { ben.shutdownWrite() } : .value
            }
        }
        listener.close()
        hang(after(.seconds(1)))
        assert(heard == ["Anna has joined", "Ben has joined", "Ben: hello", "Ben has left"])
        for client in [anna, ben] { client.close() }
        _ = hang(when(resolved: [listening]))
        _ = room
        _ = listener
        _ = anna
        _ = ben
        _ = heard
        _ = listening
    }
}

// docs/guides/patterns.md: Broadcast with slow consumers
extension Snippets {
    static func patterns2() throws {
        final class Ticker {
            private var subscribers: [ObjectIdentifier: Connection] = [:]
            private(set) var missed = 0

            func subscribe(_ connection: Connection) -> Promise<Void> {
                connection.writeQueueLimit = 16 << 10
                subscribers[ObjectIdentifier(connection)] = connection
                return connection.forEachChunk { _ in }                     // reads only to learn of the end
                    .ensure { self.subscribers[ObjectIdentifier(connection)] = nil }
            }

            func publish(_ prices: [Int]) {
                let line = prices.map(String.init).joined(separator: " ") + "\n"
                let taken = broadcast(line.utf8, to: subscribers.values, overflow: .drop)
                missed += subscribers.count - taken
            }
        }

        let ticker = Ticker()
        let (quick, reader) = try Connection.pair()
        let (slow, sleeper) = try Connection.pair()
        let subscriptions = [quick, slow].map { ticker.subscribe($0) }
        var (sent, received) = (0, 0)
        let reading = reader.forEachLine { _ in received += 1 }
        let publishing = repeatWhile {
            sent += 1
            ticker.publish(Array(sent...sent + 500))
            return after(.milliseconds(1)).map { ticker.missed == 0 }
        }
        hang(publishing.then { after(.milliseconds(1)) })
        assert(ticker.missed == 1 && received == sent)                      // the quick one has missed nothing
        for end in [sleeper, reader] { end.abort() }
        _ = hang(when(resolved: subscriptions + [reading]))
        _ = ticker
        _ = quick
        _ = reader
        _ = slow
        _ = sleeper
        _ = subscriptions
        _ = sent
        _ = received
        _ = reading
        _ = publishing
    }
}

// docs/guides/patterns.md: Graceful shutdown
extension Snippets {
    static func patterns3() throws {
        final class Server {
            let listener: Listener
            private var served = 0
            private var flushing: EventLoop.Timer?
            private let file = temporaryFolder + "/served"

            init() throws {
                listener = try Listener.bind("127.0.0.1:0")
                listener.serve(ServeOptions(maxConnections: 1000)) { connection in
                    connection.forEachLine(limit: 1024) { line in
                        after(.milliseconds(300)).then { connection.write(line + "\n") }.get { self.served += 1 }
                    }
                }
                flushing = EventLoop.current.schedule(every: .seconds(60)) { self.flush().cauterize() }
            }

            func flush() -> Promise<Void> { writeFile("\(served)\n", to: file, .atomically) }

            func shutDown(after signal: Guarantee<Void>) -> Promise<DrainResult> {
                signal.then { self.listener.drain(deadline: .seconds(10)) }
                    .get { _ in self.flushing?.cancel() }
                    .then { result in self.flush().map { result } }
            }
        }

        let server = try Server()
        let signal = after(.milliseconds(100))                              // in a program: try nextSignal(SIGTERM); a second one kills
        let ended = server.shutDown(after: signal)
        let client = try hang(connect(to: server.listener.localAddress))
        let answer = client.write("a request that has begun\n").then { client.readLine() }.ensure { client.close() }
        let (line, result) = try hang(when(fulfilled: answer, ended))
        assert(line == "a request that has begun" && result.aborted == 0)
        let written = try hang(readFile(temporaryFolder + "/served"))
        assert(written == Array("1\n".utf8))
        _ = server
        _ = signal
        _ = ended
        _ = client
        _ = answer
        _ = line
        _ = result
        _ = written
    }
}

// docs/guides/patterns.md: Retry with backoff
extension Snippets {
    static func patterns4() throws {
        struct Busy: Error { let retryAfter: Duration? }
        struct NotFound: Error {}

        let pauses = RetrySchedule.custom { attempt, error in
            (error as? Busy)?.retryAfter ?? min(.milliseconds(100) * (1 << min(attempt, 6)), .seconds(5))
        }

        func get(_ path: String, _ ask: @escaping (Int) -> Promise<String>) -> Promise<String> {
            retry(maxAttempts: 6, delay: pauses, while: { !($0 is NotFound) }) { attempt in
                ask(attempt).timeout(.seconds(2))                           // of each attempt
            }
            .timeout(.seconds(30))                                          // of the whole
        }

        var moments: [Duration] = []
        let answer = get("/fruit") { attempt in
            moments.append(LoopInstant(nanoseconds: 0).duration(to: EventLoop.current.now))
            switch attempt {
            case 1: return Promise(error: Busy(retryAfter: .seconds(1)))
            case 2: return Promise(error: Busy(retryAfter: nil))
            case 3: return after(.seconds(60)).map { "too late" }.asPromise()
            default: return .value("pear")
            }
        }
        let text = try hang(answer)
        assert(text == "pear" && moments == [.zero, .seconds(1), .milliseconds(1400), .milliseconds(4200)])

        let missing = get("/nothing") { _ in Promise(error: NotFound()) }
        do { print(try hang(missing)) } catch is NotFound {}
        assert(missing.isRejected)
        _ = pauses
        _ = moments
        _ = answer
        _ = text
        _ = missing
    }
}

// docs/guides/patterns.md: A client that stays connected
extension Snippets {
    static func patterns5() throws {
        func stayConnected(
            to address: SocketAddress, until stop: Guarantee<Void>, _ session: @escaping (Connection) throws -> Promise<Void>
        ) -> Promise<Void> {
            let loop = EventLoop.current
            var (pause, isStopping) = (Duration.milliseconds(200), false)
            var current: Promise<Void>?
            stop.done {
                isStopping = true
                current?.cancel()
            }
            return repeatWhile {
                let begin = loop.now
                let talk = connect(to: address, timeout: .seconds(10)).then { connection in
                    firstly { try session(connection) }.ensure { connection.close() }
                }
                current = talk
                return talk.tapError { print("disconnected: \($0)") }.recover(policy: .allErrors) { _ in .value }.then {
                    if isStopping { return after(.zero) }
                    // Not after each connect: a server that accepts and ends at once would be asked without a pause.
                    if loop.now - begin > .seconds(60) { pause = .milliseconds(200) }
                    defer { pause = min(pause * 2, .seconds(30)) }
                    return after(pause * Double.random(in: 0.5...1))       // many clients do not come back at one moment
                }.map { !isStopping }
            }
        }

        func subscribe(on connection: Connection, _ each: @escaping (String) -> Void) -> Promise<Void> {
            connection.frameTimeouts = FrameTimeouts(idle: .seconds(30))
            let beat = EventLoop.current.schedule(every: .seconds(10), jitter: .seconds(2)) {
                connection.post("ping\n".utf8, overflow: .drop)
            }
            return connection.forEachLine { line in if line != "pong" { each(line) } }.ensure { beat.cancel() }
        }
        let server = try Listener.bind("127.0.0.1:0")
        var clients = 0
        server.serve { connection -> Promise<Void> in
            clients += 1
            switch clients {
            case 1: return .value
            case 2: return after(.seconds(15)).asPromise().done { connection.abort() }
            case 3: return after(.seconds(1000)).asPromise()
            default:
                connection.post("news\n".utf8, overflow: .abort)
                return connection.forEachLine { _ in connection.write("pong\n") }
            }
        }
        var lines: [String] = []
        let (stop, seal) = Guarantee<Void>.pending()
        let staying = stayConnected(to: server.localAddress, until: stop) { subscribe(on: $0) { lines.append($0) } }
        hang(after(.seconds(300)))
        assert(clients == 4 && lines == ["news"] && staying.isPending)
        seal(())
        try hang(staying)
        server.close()
        _ = server
        _ = clients
        _ = lines
        _ = stop
        _ = seal
        _ = staying
    }
}

// docs/guides/patterns.md: At most N at a time
extension Snippets {
    static func patterns6() throws {
        let limiter = Limiter(2)
        var (running, most) = (0, 0)

        func render(_ page: Int) -> Promise<String> {
            limiter.run {
                running += 1
                most = max(most, running)
                return after(.milliseconds(1)).map { "page \(page)" }       // stands for the work
                    .ensure { running -= 1 }
            }
        }

        let pages = (1...6).map(render)
        pages[4].cancel()                                                   // it was waiting: it never begins
        let results = hang(when(resolved: pages)).map { try? $0.get() }
        assert(results == ["page 1", "page 2", "page 3", "page 4", nil, "page 6"])
        assert(most == 2 && limiter.active == 0)
        _ = limiter
        _ = running
        _ = most
        _ = pages
        _ = results
    }
}

// docs/guides/patterns.md: Limited concurrency with progress
extension Snippets {
    static func patterns7() throws {
        final class Progress {
            private(set) var done = 0
            let total: Int
            init(of total: Int) { self.total = total }

            func step() {
                done += 1
                if done % 5 == 0 { print("\(done * 100 / total) %") }
            }
        }

        func render(_ page: Int) -> Promise<String> { after(.milliseconds(10 + page % 3)).map { "page \(page)" } }

        let progress = Progress(of: 20)
        var underWay: [Int: Promise<String>] = [:]
        let pages = when(fulfilled: 1...progress.total, concurrently: 4) { number in
            let page = render(number).get { _ in progress.step() }.ensure { underWay[number] = nil }
            underWay[number] = page
            return page
        }
        .tapError { _ in for page in underWay.values { page.cancel() } }
        .timeout(.seconds(60))

        let texts = try hang(pages)
        assert(texts.count == 20 && texts.last == "page 20" && progress.done == 20 && underWay.isEmpty)
        _ = progress
        _ = underWay
        _ = pages
        _ = texts
    }
}

// docs/guides/patterns.md: A periodic job that does not overlap
extension Snippets {
    static func patterns8() throws {
        func periodically(
            every period: Duration, until stop: Guarantee<Void>, _ job: @escaping () throws -> Promise<Void>
        ) -> Promise<Void> {
            let loop = EventLoop.current
            var next = loop.now
            var isStopping = false
            stop.done { isStopping = true }                                 // a race does not cancel what a handler waits for
            return repeatWhile {
                next = max(next, loop.now) + period
                return firstly(job)
                    .recover { error -> Promise<Void> in
                        print("the job failed: \(error)")
                        return .value
                    }
                    .then { race(after(deadline: next), stop) }
                    .map { !isStopping }
            }
        }

        var begins: [Int64] = []
        let (stop, seal) = Guarantee<Void>.pending()
        let cleaning = periodically(every: .seconds(10), until: stop) {
            begins.append(EventLoop.current.now.nanoseconds / 1_000_000_000)
            if begins.count == 2 { throw NotYet() }
            return after(.seconds(begins.count == 3 ? 25 : 1)).asPromise()  // the third round takes long
        }
        hang(after(.seconds(60)))
        assert(begins == [0, 10, 20, 45, 55])
        seal(())                                                            // cleaning.cancel() would end the round too
        try hang(cleaning)
        assert(EventLoop.current.now.nanoseconds == 60_000_000_000)
        _ = begins
        _ = stop
        _ = seal
        _ = cleaning
    }
}

// docs/guides/patterns.md: Clean-up that a cancellation waits for
extension Snippets {
    static func patterns9() throws {
        func worker(_ script: String) -> Promise<ChildExitStatus> {
            Promise { resolver in
                let child = try ChildProcess.spawn("sh", arguments: ["-c", script])
                child.exit.done { resolver.fulfill($0) }
                resolver.onCancelThen {
                    try? child.kill(SIGTERM)
                    return race(child.exit.asVoid(), after(.milliseconds(20))).then {
                        try? child.kill(SIGKILL)                            // nothing happens if it has ended
                        return child.exit.asVoid()
                    }
                }
            }
        }

        var slots = 0
        let workers = ["exec sleep 60", "trap '' TERM; exec sleep 60"].map { script in
            slots += 1
            return worker(script).ensure { slots -= 1 }
        }
        func stop() -> Guarantee<Void> { when(guarantees: workers.map { $0.cancelAndWait() }).asVoid() }

        hang(after(.milliseconds(5)).then { stop() })                       // or nextSignal(SIGTERM); a second one kills
        assert(slots == 0 && workers.allSatisfy(\.isCancelled))
        _ = slots
        _ = workers
    }
}

// docs/guides/patterns.md: Copy a large file with progress
extension Snippets {
    static func patterns10() throws {
        final class File: Sendable {
            let descriptor: CInt

            init(_ path: String, _ flags: CInt) throws {
                descriptor = open(path, flags | O_CLOEXEC, 0o644)
                guard descriptor >= 0 else { throw SystemError(.open, errno, detail: path) }
            }

            deinit { close(descriptor) }

            /// Copies up to a megabyte. Blocks: call it on a thread of a pool.
            func copyChunk(to target: File) throws -> Int {
                var buffer = [UInt8](repeating: 0, count: 1 << 20)
                let count = Glibc.read(descriptor, &buffer, buffer.count)
                guard count >= 0 else { throw SystemError(.read, errno) }
                var written = 0
                while written < count {
                    let result = buffer[written..<count].withUnsafeBytes { Glibc.write(target.descriptor, $0.baseAddress, $0.count) }
                    guard result >= 0 else { throw SystemError(.write, errno) }
                    written += result
                }
                return count
            }
        }

        func copy(_ source: String, to target: String, progress: @escaping (Int) -> Void) -> Promise<Int> {
            var copied = 0
            return Promise(on: .shared) { (try File(source, O_RDONLY), try File(target, O_WRONLY | O_CREAT | O_TRUNC)) }
                .then { input, output in
                    repeatWhile {
                        Promise(on: .shared) { try input.copyChunk(to: output) }.map { count in
                            copied += count
                            progress(copied)
                            return count > 0
                        }
                    }
                }
                .map { copied }
        }
        let (source, target) = (temporaryFolder + "/source", temporaryFolder + "/target")
        var reports: [Int] = []
        let copied = writeFile([UInt8](repeating: 7, count: 2_500_000), to: source)
            .then { copy(source, to: target) { reports.append($0) } }
        let count = try hang(copied)
        assert(count == 2_500_000 && reports.first == 1 << 20 && reports.last == count)
        _ = source
        _ = target
        _ = reports
        _ = copied
        _ = count
    }
}

// docs/guides/patterns.md: A child with its standard error
extension Snippets {
    static func patterns11() throws {
        struct ToolFailed: Error {
            let status: ChildExitStatus
            let lastWords: String
        }

        func lines(of name: String, _ arguments: [String]) -> Promise<[String]> {
            firstly {
                let child = try ChildProcess.spawn(
                    name, arguments: arguments, standardInput: .null, standardOutput: .pipe, standardError: .pipe)
                var lines: [String] = []
                var lastWords = ""
                let output = child.standardOutput!.forEachLine(limit: 1 << 20) { line in lines.append(line) }
                let errors = child.standardError!.forEachLine(limit: 1 << 20) { line in
                    print("\(name): \(line)")
                    lastWords = line
                }
                return when(fulfilled: output, errors, child.waitOrKill()).tapError { _ in try? child.kill(SIGKILL) }
                    .map { _, _, status in
                        guard status.isSuccess else { throw ToolFailed(status: status, lastWords: lastWords) }
                        return lines
                    }
            }
        }

        let listed = try hang(lines(of: "sh", ["-c", "echo a; echo careful >&2; echo b"]))
        assert(listed == ["a", "b"])

        do {
            print(try hang(lines(of: "sh", ["-c", "echo no such disk >&2; exit 3"])))
        } catch let error as ToolFailed {
            assert(error.status == .exited(3) && error.lastWords == "no such disk")
        }
        _ = listed
    }
}

// docs/guides/patterns.md: A C callback from another thread
extension Snippets {
    static func patterns12() throws {
        final class Waiting: Sendable {
            let resolver: Resolver<CInt>
            init(_ resolver: Resolver<CInt>) { self.resolver = resolver }
        }

        func measure(_ sensor: CInt) -> Promise<CInt> {
            Promise { resolver in
                let context = Unmanaged.passRetained(Waiting(resolver)).toOpaque()
                read_sensor(sensor, context) { context, value in             // on a thread of the library, once
                    let waiting = Unmanaged<Waiting>.fromOpaque(context!).takeRetainedValue()
                    if value < 0 { waiting.resolver.reject(SystemError(.read, -value)) } else { waiting.resolver.fulfill(value) }
                }
            }
        }

        var sum: CInt = 0
        let measured = when(fulfilled: [1, 2, 3].map { measure($0) }).done { values in
            sum = values.reduce(0, +)                                       // on this thread: no lock
        }
        try hang(measured)
        assert(sum == 60)
        _ = sum
        _ = measured
    }
}

// docs/guides/patterns.md: A client that reconnects, tested
@Suite struct Patterns13 {
    func stayConnected(to address: String, _ body: @escaping (String) -> Void) -> Promise<Void> {
        let pauses = RetrySchedule.exponential(from: .milliseconds(100), cap: .seconds(5))
        return retry(maxAttempts: .max, delay: pauses) { _ in
            connect(to: address, options: [.set(.keepAlive, to: true), .set(.keepAliveIdle, to: .seconds(10))])
                .then { connection in connection.forEachLine(body) }
                .map { throw PromiseError.badInput("the server has ended the stream") }
        }
    }

    @Test func theClientConnectsAgain() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            func serve() throws {
                try Listener.bind("0.0.0.0:7000").serve { $0.write("hello\n").then { after(.seconds(3600)) } }.cauterize()
            }
            try server.run { try serve() }
            var greetings = 0
            let running = client.run { stayConnected(to: "server:7000") { _ in greetings += 1 } }
            network.run(for: .seconds(1))
            server.crash()
            network.run(for: .seconds(600))
            try server.restart { try serve() }
            network.run(for: .seconds(600))
            #expect(greetings == 2)
            client.run { running.cancel() }
        }
    }
}
