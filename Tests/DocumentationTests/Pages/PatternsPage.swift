// Made by .ci/snippets.py from docs/guides/patterns.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

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

// docs/guides/patterns.md: Graceful shutdown
extension Snippets {
    static func patterns2() throws {
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
        let signal = after(.milliseconds(100))                              // in a program: try nextSignal(SIGTERM)
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

// docs/guides/patterns.md: A periodic job that does not overlap
extension Snippets {
    static func patterns3() throws {
        func periodically(every period: Duration, _ job: @escaping () throws -> Promise<Void>) -> Promise<Void> {
            let loop = EventLoop.current
            var next = loop.now
            return repeatWhile {
                next = max(next, loop.now) + period
                return firstly(job)
                    .recover { error -> Promise<Void> in
                        print("the job failed: \(error)")
                        return .value
                    }
                    .then { after(deadline: next) }
                    .map { true }
            }
        }

        var begins: [Int64] = []
        let cleaning = periodically(every: .seconds(10)) {
            begins.append(EventLoop.current.now.nanoseconds / 1_000_000_000)
            if begins.count == 2 { throw NotYet() }
            return after(.seconds(begins.count == 3 ? 25 : 1)).asPromise()  // the third round takes long
        }
        hang(after(.seconds(60)))
        assert(begins == [0, 10, 20, 45, 55])
        cleaning.cancel()                                                   // also ends the round that is under way
        assert(cleaning.isCancelled)
        _ = begins
        _ = cleaning
    }
}

// docs/guides/patterns.md: A child with its standard error
extension Snippets {
    static func patterns4() throws {
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
                return when(fulfilled: output, errors, child.waitOrKill()).map { _, _, status in
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
    static func patterns5() throws {
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
