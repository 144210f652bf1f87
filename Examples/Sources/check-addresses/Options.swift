import AddressChecks
import ExampleSupport

/// The command line: `check-addresses [--concurrently N] [--timeout SECONDS] [--retries N] [HOST:PORT …]`. Without
/// addresses, they are read from standard input.
struct Options {
    private(set) var settings = AddressChecks.Settings()
    let addresses: [String]

    init(_ arguments: some Sequence<String>) throws {
        let (options, operands) = try CommandLineOption.optionsAndOperands(in: arguments)
        for option in options {
            switch option.name {
            // Each check takes a descriptor, or several for a name with several addresses, and 1024 is the usual limit.
            case "--concurrently": settings.concurrency = try option.count(in: 1...300)
            case "--timeout": settings.timeout = try option.seconds()
            case "--retries": settings.retries = try option.count(in: 0...100)
            default: throw option.unknown
            }
        }
        addresses = try operands.isEmpty ? Self.standardInput() : operands.map { try Self.address($0, "argument") }
        if addresses.isEmpty {
            throw CommandLineOption.UsageError("no address is given, HOST:PORT as argument or line of standard input")
        }
    }

    /// The addresses on standard input, which is read to the end. Empty lines are skipped.
    private static func standardInput() throws -> [String] {
        var addresses: [String] = []
        var number = 0
        while let line = readLine() {
            number += 1
            for word in line.split(whereSeparator: \.isWhitespace) {
                addresses.append(try address(String(word), "line \(number)"))
            }
        }
        return addresses
    }

    /// Only printable ASCII: the addresses may be printed on a terminal.
    private static func address(_ text: String, _ place: String) throws -> String {
        guard text.utf8.allSatisfy({ 0x21...0x7e ~= $0 }), !text.hasPrefix("unix:") else {
            throw CommandLineOption.UsageError("\(place) is not HOST:PORT")
        }
        return try CommandLineOption(name: place, value: text).endpoint()
    }
}
