@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The echo server as users run it, in a separate process. It is ended, and waited for, when the last reference is
/// released.
final class ServerProcess {
    let pid: pid_t
    private let output: Pipe
    private let errors: Pipe
    private(set) var status: Exit?

    enum Exit: Equatable { case code(CInt), signal(CInt) }

    /// A server that has printed its address, on a port of 127.0.0.1 unless told otherwise or passed a socket.
    static func serving(
        _ arguments: String..., limits: String? = nil, passing socket: CInt? = nil
    ) throws -> ServerProcess {
        let listen = arguments.contains("--listen") || socket != nil ? [] : ["--listen", "127.0.0.1:0"]
        // With too few descriptors for the default, the server reports that, and serves fewer.
        let isLimited = limits?.contains("ulimit") == true || arguments.contains { $0.hasPrefix("--max-connections") }
        let connections = isLimited || mayHaveDescriptorsForDefaults ? [] : ["--max-connections", "100"]
        let server = try ServerProcess(listen + connections + arguments, limits: limits, passing: socket)
        let count = (listen + arguments).filter { $0 == "--listen" }.count + (socket == nil ? 0 : 1)
        for _ in 0..<count { server.addresses.append(try server.readAddress("listening on ")) }
        if arguments.contains("--metrics") { server.metricsAddress = try server.readAddress("metrics on ") }
        return server
    }

    private(set) var addresses: [SocketAddress] = []
    var address: SocketAddress { addresses[0] }
    private(set) var metricsAddress: SocketAddress?

    /// True if a server may have as many connections as by default, 10,000 and the lingering ones, without logging a
    /// line.
    static let mayHaveDescriptorsForDefaults = mayHaveDescriptors(20_000)

    /// - Parameters:
    ///   - limits: shell commands to run first, only in the server's process.
    ///   - descriptor: becomes its descriptor 3.
    init(_ arguments: [String], limits: String? = nil, passing descriptor: CInt? = nil) throws {
        let (output, errors) = (try Pipe(), try Pipe())
        (self.output, self.errors) = (output, errors)
        let server = Self.path
        let command = limits.map { ["/bin/sh", "-c", "\($0); exec \"$0\" \"$@\"", server] } ?? [server]

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output.writer, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.writer, STDERR_FILENO)
        // The server must not inherit the descriptors of other tests: it would hold their pipes, and fill its own
        // table.
        if let descriptor { posix_spawn_file_actions_adddup2(&actions, descriptor, 3) }
        _ = closeFrom(&actions, descriptor == nil ? 3 : 4)
        // Nor the test runner's blocked and ignored signals.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var argv: [UnsafeMutablePointer<CChar>?] = (command + arguments).map { strdup($0) } + [nil]
        defer { argv.forEach { free($0) } }
        var pid: pid_t = 0
        let result = posix_spawn(&pid, command[0], &actions, &attributes, &argv, environ)
        self.pid = pid
        guard result == 0 else {
            status = .code(-1)
            throw SystemError(.socket, result, detail: "posix_spawn \(command[0])")
        }
        output.closeWriter()
        errors.closeWriter()
    }

    deinit { if status == nil { end(SIGKILL) } }

    /// Next to the running test bundle.
    private static let path: String = {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let bundle = String(decoding: buffer[..<max(count, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return bundle[..<(bundle.lastIndex(of: "/") ?? bundle.startIndex)] + "/echo-server"
    }()

    // MARK: What it says

    func readLine() throws -> String { try output.readLine() }
    func readError() throws -> String { try errors.readLine() }

    /// True if more errors are available to read now.
    var hasMoreErrors: Bool { errors.hasMore }

    /// The number of unread bytes of its output.
    var unreadBytes: Int { output.unreadBytes }

    /// Closes the reading end of its output.
    func stopListening() {
        output.closeReader()
        errors.closeReader()
    }

    private func readAddress(_ prefix: String) throws -> SocketAddress {
        let line = try readLine()
        guard line.hasPrefix(prefix) else { throw Failure(description: "'\(line)' is not where it listens") }
        return try SocketAddress(String(line.dropFirst(prefix.count)))
    }

    /// The rest of the output, up to its end.
    func readToEnd() throws -> (output: String, errors: String) {
        (try output.readToEnd(), try errors.readToEnd())
    }

    // MARK: Its end

    func signal(_ number: CInt) { kill(pid, number) }

    /// True if none of its threads runs, or is ready to.
    var isAsleep: Bool {
        Folder.names(in: "/proc/\(pid)/task").allSatisfy { thread in
            text(ofFile: "/proc/\(pid)/task/\(thread)/stat").split(separator: ")").last?.hasPrefix(" S ") != false
        }
    }

    /// Another signal to stop, once it does not count as a copy of the first one.
    func signalAgain(_ number: CInt) {
        hang(after(.milliseconds(100)))
        signal(number)
    }

    /// Waits until it has ended, at most ten seconds, and returns its exit status.
    @discardableResult
    func waitForExit(at place: SourceLocation = #_sourceLocation) throws -> Exit {
        if let status { return status }
        do { _ = try readToEnd() } catch {
            Issue.record("the server does not end", sourceLocation: place)
            end(SIGKILL)
            throw error
        }
        return end(nil)
    }

    /// By its process id, and only while it is our child: until it has been waited for, no other process can have that
    /// id.
    @discardableResult
    private func end(_ signal: CInt?) -> Exit {
        if let signal { kill(pid, signal) }
        var raw: CInt = 0
        while waitpid(pid, &raw, 0) < 0 && errno == EINTR {}
        let exit: Exit = raw & 0x7F == 0 ? .code(raw >> 8 & 0xFF) : .signal(raw & 0x7F)
        status = exit
        return exit
    }

    /// Its limit of descriptors.
    var descriptorLimit: Int {
        get {
            var limit = rlimit()
            return processLimit(pid, CInt(RLIMIT_NOFILE.rawValue), nil, &limit) == 0 ? Int(limit.rlim_cur) : -1
        }
        set {
            var limit = rlimit(rlim_cur: rlim_t(newValue), rlim_max: rlim_t(newValue))
            expectEqual(processLimit(pid, CInt(RLIMIT_NOFILE.rawValue), &limit, nil), 0)
        }
    }
}

extension ServerProcess {
    /// Its answer to SIGUSR1.
    func statistics() throws -> String {
        signal(SIGUSR1)
        return try readLine()
    }

    /// Asks it to end, waits for it, and returns the rest of its output. `meanwhile` is called while it drains.
    @discardableResult
    func terminate(by number: CInt = SIGTERM, _ meanwhile: () throws -> Void = {}) throws -> String {
        signal(number)
        try meanwhile()
        let rest = try readToEnd()
        expectEqual(rest.errors, "")
        expectEqual(try waitForExit(), .code(0))
        return rest.output
    }

    /// Returns when it accepts no more connections, having received the signal.
    func awaitDraining() throws {
        for _ in 0..<100_000 {
            do { _ = try Peer(to: address) } catch let error as SystemError {
                // Reset: it was in the backlog of the closed listener.
                if error.code == ECONNREFUSED || error.code == ENOENT { return }
                guard error.code == ECONNRESET else { throw error }
            }
        }
        throw Failure(description: "the server goes on accepting")
    }
}

/// The number before `word` in a line of statistics.
func number(before word: String, in line: String) throws -> Int {
    let words = line.split { " (),".contains($0) }.map(String.init)
    guard let index = words.firstIndex(of: word), index > 0, let number = Int(words[index - 1]) else {
        throw Failure(description: "no number before '\(word)' in '\(line)'")
    }
    return number
}

struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// Hidden from Swift without _GNU_SOURCE. See prlimit(2).
private let processLimit = unsafeBitCast(
    dlsym(nil, "prlimit"),
    to: (@convention(c) (pid_t, CInt, UnsafePointer<rlimit>?, UnsafeMutablePointer<rlimit>?) -> CInt).self)

/// Hidden from Swift without _GNU_SOURCE.
private let closeFrom = unsafeBitCast(
    dlsym(nil, "posix_spawn_file_actions_addclosefrom_np"),
    to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, CInt) -> CInt).self)
