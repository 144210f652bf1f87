import Glibc
import Promises
import Reactor

/// Runs the `main` of a program. If `body` throws, prints the error on standard error and ends the process with 64 for a
/// wrong command line, and otherwise with 71; see sysexits.h.
/// - Parameter name: begins the line on standard error.
public func runProgram(_ name: String, _ body: () throws -> Void) {
    do { try body() } catch {
        let message = "\(name): \(error)\n"
        write(STDERR_FILENO, message, message.utf8.count)
        exit(error is CommandLineOption.UsageError ? EX_USAGE : EX_OSERR)
    }
}

extension Listener {
    /// Prints the address on standard output, for users and for the tests, which let the kernel choose the port.
    public func printAddress() {
        print("listening on \(localAddress)")
        fflush(nil)
    }
}
