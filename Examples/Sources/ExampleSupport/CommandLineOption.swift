import Reactor

/// An option of a command line and its value: `--listen 127.0.0.1:8080`.
public struct CommandLineOption {
    /// The name, with its dashes.
    public let name: String
    /// The value, as it stands on the command line.
    public let value: String

    /// - Parameters:
    ///   - name: begins the text of a `UsageError` about the value.
    ///   - value: the text of the value.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Thrown for a command line that cannot be understood.
    public struct UsageError: Error, CustomStringConvertible {
        /// What is wrong, for standard error.
        public let description: String

        /// - Parameter description: what is wrong.
        public init(_ description: String) { self.description = description }
    }

    /// The options of a command line, in which each has a value.
    /// - Parameter arguments: those of the process, without its name.
    public static func all(in arguments: some Sequence<String>) throws(UsageError) -> [CommandLineOption] {
        var options: [CommandLineOption] = []
        var rest = arguments.makeIterator()
        while let name = rest.next() {
            guard let value = rest.next() else { throw UsageError("\(name) needs a value") }
            options.append(CommandLineOption(name: name, value: value))
        }
        return options
    }

    /// The options of a command line, each with its value, and its operands: the arguments that neither begin with a dash
    /// nor are the value of an option.
    /// - Parameter arguments: those of the process, without its name.
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

    /// The value as `HOST:PORT`, where the host is an IP address; see `SocketAddress`.
    public func address() throws(UsageError) -> SocketAddress {
        do throws(SocketAddress.ParseError) {
            return try SocketAddress(value)
        } catch {
            throw UsageError("\(name): \(error)")
        }
    }

    /// The value as a duration from a millisecond to a day.
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

    /// The value as a number, from 1 to a million unless the caller gives other bounds.
    public func count(in bounds: ClosedRange<Int> = 1...1_000_000) throws(UsageError) -> Int {
        guard let count = Int(value), bounds ~= count else {
            throw UsageError("\(name): '\(value)' is not a number from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return count
    }

    /// The value as `HOST:PORT`, where the host may be a name, which is looked up for each connection.
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

    /// The error to throw if no option of the program has this name.
    public var unknown: UsageError { UsageError("unknown option '\(name)'") }
}
