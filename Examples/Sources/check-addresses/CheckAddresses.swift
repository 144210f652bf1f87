import AddressChecks
import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorIO

/// The program: checks addresses, prints a line for each, and exits with 0 if all accept connections, with 1 if some do
/// not, and with 130 after SIGINT.
@main
enum CheckAddresses {
    static func main() {
        runProgram("check-addresses") { arguments in exit(try check(Options(arguments))) }
    }

    private static func check(_ options: Options) throws -> CInt {
        let checks = AddressChecks(options.addresses, options.settings)
        let report = Report(of: checks)
        try report.update()
        let checked = checks.start(onResult: report.update)
        // Once: a second SIGINT has its default action, which ends the process at once.
        try nextSignal(SIGINT).done { checked.cancel() }
        do {
            try hang(checked)
        } catch let error where error.isCancelled {
            try report.end()
            return 128 + SIGINT
        }
        try report.end()
        return checks.failedCount == 0 ? 0 : 1
    }
}
