import Glibc
import Reactor

/// What a program has written, and how it has ended.
public struct ChildOutput: Hashable, Sendable {
    /// How it has ended. A code that is not zero is an outcome like others: see `isSuccess`.
    public let status: ChildExitStatus
    /// All of its standard output.
    public let standardOutput: [UInt8]
    /// All of its standard error.
    public let standardError: [UInt8]

    /// The standard output as text; what is not UTF-8 becomes U+FFFD.
    public var text: String { String(decoding: standardOutput, as: UTF8.self) }
}

extension ChildProcess {
    /// Runs a program to its end and gathers what it writes.
    ///
    /// ```swift
    /// ChildProcess.run("git", ["rev-parse", "HEAD"], timeout: .seconds(5)).done { print($0.text) }
    /// ```
    ///
    /// Rejected with a `SystemError` as `spawn`, with `EFBIG` of `read` if it writes more than `limit` bytes to one of
    /// its streams, and with `PromiseError.timedOut`. Then, and also when it is cancelled, the program is killed, with
    /// its group if it has one of its own, and what it has written is lost: who wants that reads the streams of
    /// `spawn`. Otherwise it waits for the end of the program and of both its streams: a process that the program
    /// leaves behind with these streams open is waited for too.
    /// - Parameters:
    ///   - name: a name along `PATH`, or a path, which has a slash in it.
    ///   - input: what the program reads; it need not read all of it.
    ///   - limit: bytes of each stream; 16 MiB if nothing is said.
    ///   - timeout: how long it may take; `nil` for ever.
    ///   - ownGroup: see `spawn(_:)`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func run(
        _ name: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, limit: Int = 16 << 20, timeout: Duration? = nil, ownGroup: Bool = false,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<ChildOutput> {
        let plan = SpawnRequest(
            name, isLookedUp: true, arguments: arguments, environment: environment,
            workingDirectory: workingDirectory, hasOwnGroup: ownGroup)
        let child: ChildProcess
        do throws(SystemError) { child = try start(plan, [input.isEmpty ? .null : .pipe, .pipe, .pipe]) } catch {
            return Promise(error: error, file, line)
        }
        if let writer = child.standardInput {
            // EPIPE says that the program does not want the rest.
            writer.write(input).ensure { writer.close() }.catch(policy: .allErrors) { _ in }
        }
        let output = Gathered(child.standardOutput!, limit)
        let errors = Gathered(child.standardError!, limit)
        let end = child.waitOrKill()
        let all = when(fulfilled: [output.all(), errors.all(), end.asVoid()])
        let promise = (timeout.map { all.timeout($0, file: file, line: line) } ?? all).ensure {
            // What has been rejected has not ended.
            end.cancel()
            child.standardInput?.abort()
            child.standardOutput?.abort()
            child.standardError?.abort()
        }
        return promise.map(
            "run",
            { _ in
                ChildOutput(
                    status: child.exitStatus ?? .unknown, standardOutput: output.bytes, standardError: errors.bytes)
            }, file, line)
    }
}

/// One stream of a program, from beginning to end.
private final class Gathered {
    private let connection: Connection
    private let limit: Int
    private(set) var bytes: [UInt8] = []

    init(_ connection: Connection, _ limit: Int) {
        self.connection = connection
        self.limit = limit
    }

    func all() -> Promise<Void> {
        connection.receive().then { [self] chunk -> Promise<Void> in
            if chunk.isEmpty { return .value }
            bytes += chunk
            if bytes.count > limit {
                throw SystemError(.read, EFBIG, detail: "a program has written more than \(limit) bytes")
            }
            return all()
        }
    }
}
