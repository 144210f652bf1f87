import Reactor

/// A command-line option and its value: `--listen 127.0.0.1:8080`.
public struct CommandLineOption {
    /// The name, with its dashes.
    public let name: String
    /// The value, as given on the command line.
    public let value: String

    /// - Parameters:
    ///   - name: begins the message of a `UsageError` about the value.
    ///   - value: the text of the value.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Thrown for an invalid command line.
    public struct UsageError: Error, CustomStringConvertible {
        /// The message for standard error.
        public let description: String

        /// - Parameter description: the message.
        public init(_ description: String) { self.description = description }
    }

    /// Parses a command line in which each option has a value.
    /// - Parameter arguments: the arguments of the process, without its name.
    public static func all(in arguments: some Sequence<String>) throws(UsageError) -> [CommandLineOption] {
        var options: [CommandLineOption] = []
        var rest = arguments.makeIterator()
        while let name = rest.next() {
            guard let value = rest.next() else { throw UsageError("\(name) needs a value") }
            options.append(CommandLineOption(name: name, value: value))
        }
        return options
    }

    /// Parses a command line into its options, each with a value, and its operands: the arguments that neither begin
    /// with a dash nor are the value of an option.
    /// - Parameter arguments: the arguments of the process, without its name.
    public static func optionsAndOperands(
        in arguments: some Sequence<String>
    ) throws(UsageError) -> (options: [CommandLineOption], operands: [String]) {
        var options: [String] = []
        var operands: [String] = []
        var rest = arguments.makeIterator()
        while let argument = rest.next() {
            if argument.hasPrefix("-") {
                options += [argument] + (rest.next().map { [$0] } ?? [])
            } else {
                operands.append(argument)
            }
        }
        return (try all(in: options), operands)
    }

    /// The value as `HOST:PORT` with an IP address as the host; see `SocketAddress`.
    public func address() throws(UsageError) -> SocketAddress {
        do throws(SocketAddress.ParseError) {
            return try SocketAddress(value)
        } catch {
            throw UsageError("\(name): \(error)")
        }
    }

    /// The value as a duration between a millisecond and a day.
    public func seconds() throws(UsageError) -> Duration {
        guard let seconds = Double(value), 0.001...86_400 ~= seconds else {
            throw UsageError("\(name): '\(value)' is not a number of seconds from 0.001 to 86400")
        }
        return .seconds(seconds)
    }

    /// The value as a number of bytes, up to a gibibyte.
    public func bytes() throws(UsageError) -> Int {
        guard let bytes = Int(value), 16...1 << 30 ~= bytes else {
            throw UsageError("\(name): '\(value)' is not a number of bytes from 16 to 1073741824")
        }
        return bytes
    }

    /// The value as a number, from 1 to a million unless the caller sets other bounds.
    public func count(in bounds: ClosedRange<Int> = 1...1_000_000) throws(UsageError) -> Int {
        guard let count = Int(value), bounds ~= count else {
            throw UsageError("\(name): '\(value)' is not a number from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return count
    }

    /// The value as `HOST:PORT`; the host may be a name, which is looked up for each connection.
    public func endpoint() throws(UsageError) -> String {
        guard let colon = value.lastIndex(of: ":"), colon != value.startIndex,
            UInt16(value[value.index(after: colon)...]) != nil
        else { throw UsageError("\(name): '\(value)' is not HOST:PORT") }
        return value
    }

    /// The choice that the value names.
    public func choice<Choice>(_ choices: [String: Choice]) throws(UsageError) -> Choice {
        guard let choice = choices[value] else {
            throw UsageError("\(name): '\(value)' is none of \(choices.keys.sorted().joined(separator: ", "))")
        }
        return choice
    }

    /// The error to throw if the program has no option of this name.
    public var unknown: UsageError { UsageError("unknown option '\(name)'") }
}
