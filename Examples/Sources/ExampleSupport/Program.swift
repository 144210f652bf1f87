import Glibc
import Promises
import Reactor
import ReactorIO

/// Runs the `main` of a program. If `body` throws, prints the error on standard error and exits with 64 for an invalid
/// command line, otherwise with 71; see sysexits.h.
/// - Parameters:
///   - name: begins the line on standard error.
///   - body: receives the arguments, without the program's name.
public func runProgram(_ name: String, _ body: (ArraySlice<String>) throws -> Void) {
    do {
        // Swift reads them from /proc; without it even the name is missing, and a server would listen at its default
        // address.
        if CommandLine.arguments.isEmpty { throw NoCommandLine() }
        try body(CommandLine.arguments.dropFirst())
    } catch {
        let message = "\(name): \(error)\n"
        write(STDERR_FILENO, message, message.utf8.count)
        exit(error is CommandLineOption.UsageError ? EX_USAGE : EX_OSERR)
    }
}

private struct NoCommandLine: Error, CustomStringConvertible {
    var description: String { "the command line cannot be read: is /proc mounted?" }
}

extension Listener {
    /// Prints the address on standard output, for users, and for tests that let the kernel choose the port.
    public func printAddress() {
        print("listening on \(localAddress)")
        fflush(nil)
    }
}
