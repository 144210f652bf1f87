import Promises
import Reactor
import ReactorLibc

/// A program's output and exit status.
public struct ChildOutput: Hashable, Sendable {
    /// The exit status. A nonzero exit code is not an error; see `isSuccess`.
    public let status: ChildExitStatus
    /// The complete standard output.
    public let standardOutput: [UInt8]
    /// The complete standard error.
    public let standardError: [UInt8]

    /// The standard output as a string. Invalid UTF-8 becomes U+FFFD.
    public var text: String { String(decoding: standardOutput, as: UTF8.self) }
}

extension ChildProcess {
    /// Runs a program to its end, and collects its output.
    ///
    /// ```swift
    /// ChildProcess.run("git", ["rev-parse", "HEAD"], timeout: .seconds(5)).done { print($0.text) }
    /// ```
    ///
    /// The promise waits until the program and both its streams have ended, even if a background process keeps these
    /// open. A rejection or a cancellation loses the output and kills the program, or the process group that it leads,
    /// even after the program's own end. To keep partial output, read the streams of `spawn`.
    ///
    /// The promise is rejected with:
    /// - the `SystemError` from `spawn`;
    /// - `SystemError` from `read` with `EFBIG` if the program writes more than `limit` bytes to one of its streams;
    /// - `PromiseError.timedOut` if `timeout` expires.
    ///
    /// The program need not read all of `input`. `limit` applies to each stream. The other arguments are those of
    /// `spawn`.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public static func run(
        _ name: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, limit: Int = 16 << 20, timeout: Duration? = nil, ownGroup: Bool = false,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<ChildOutput> {
        let request = SpawnRequest(
            name, arguments: arguments, environment: environment,
            workingDirectory: workingDirectory, hasOwnGroup: ownGroup)
        let child: ChildProcess
        do throws(SystemError) { child = try start(request, [input.isEmpty ? .null : .pipe, .pipe, .pipe]) } catch {
            return Promise(error: error, file, line)
        }
        if let writer = child.standardInput {
            // EPIPE means that the program does not want the remaining input.
            writer.write(input).ensure { writer.close() }.catch(policy: .allErrors) { _ in }
        }
        let (output, errors) = (StreamCollector(), StreamCollector())
        let end = child.waitOrKill()
        var isComplete = false
        let all = when(
            fulfilled: output.all(child.standardOutput!, limit), errors.all(child.standardError!, limit), end
        ).done { _ in isComplete = true }
        let promise = (timeout.map { all.timeout($0, file: file, line: line) } ?? all).ensure {
            end.cancel()
            if ownGroup && !isComplete { try? child.kill(SIGKILL, wholeGroup: true) }
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

private final class StreamCollector {
    private(set) var bytes: [UInt8] = []

    func all(_ connection: Connection, _ limit: Int) -> Promise<Void> {
        connection.forEachChunk { [self] chunk in
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            if bytes.count > limit {
                throw SystemError(.read, EFBIG, detail: "a program has written more than \(limit) bytes")
            }
        }
    }
}
