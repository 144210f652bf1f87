import CLinux
import Glibc

/// What systemd, or another service manager that speaks its protocols, has to say to this process and wants to hear from it.
/// Without one all of this does nothing. See sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).
public enum ServiceManager {
    /// Something to tell the service manager. A text of your own is sent as it stands: `"EXTEND_TIMEOUT_USEC=5000000"`.
    public struct State: Hashable, Sendable, ExpressibleByStringLiteral {
        /// As it is sent: `READY=1`.
        public let text: String

        /// A state of your own.
        public init(_ text: String) { self.text = text }
        /// A state of your own.
        public init(stringLiteral text: String) { self.text = text }

        /// The service is up.
        public static var ready: State { "READY=1" }
        /// The service is going down.
        public static var stopping: State { "STOPPING=1" }
        /// The service is alive; see `watchdogInterval`.
        public static var watchdog: State { "WATCHDOG=1" }
        /// A line for people; line breaks become spaces.
        public static func status(_ text: String) -> State {
            State("STATUS=" + String(text.map { $0.isNewline ? " " : $0 }))
        }
        /// Another process is the service's main one.
        public static func mainProcess(_ id: pid_t) -> State { State("MAINPID=\(id)") }
    }

    /// Tells the service manager, with one datagram to the socket that NOTIFY_SOCKET names. Any thread; does not block.
    /// - Returns: false if there is no service manager.
    /// - Throws: `SystemError`: `EINVAL` for a NOTIFY_SOCKET that is no Unix address, and what socket(2) and sendmmsg(2)
    ///   report, such as `EAGAIN` if the manager does not keep up.
    @discardableResult
    public static func notify(_ states: State...) throws(SystemError) -> Bool { try notify(states, .ofProcess) }

    package static func notify(_ states: [State], _ environment: ServiceEnvironment) throws(SystemError) -> Bool {
        guard let name = environment["NOTIFY_SOCKET"], !name.isEmpty else { return false }
        let address: SocketAddress
        do throws(SocketAddress.ParseError) {
            guard name.begins(with: "/") || name.begins(with: "@") else {
                throw SocketAddress.ParseError(text: name, reason: "it begins with neither / nor @")
            }
            address = try SocketAddress("unix:\(name)")
        } catch {
            throw SystemError(.sendMessages, EINVAL, detail: "NOTIFY_SOCKET: \(error)")
        }
        let kernel = CountingSyscalls()
        let socket = try Socket(SOCK_DGRAM, for: address, kernel)
        defer { kernel.close(socket.fd) }
        let text = Array(states.map(\.text).joined(separator: "\n").utf8)
        _ = try text.withUnsafeBytes { DatagramBatch.send($0, to: address, socket.fd, kernel) }
            .orThrow(.sendMessages, address.description)
        return true
    }

    /// How often the service manager wants to hear `.watchdog`, or it will end this process; `nil` if it does not. Send it twice
    /// as often.
    public static var watchdogInterval: Duration? { watchdogInterval(.ofProcess) }

    package static func watchdogInterval(_ environment: ServiceEnvironment) -> Duration? {
        if let process = environment["WATCHDOG_PID"], pid_t(decimal: process) != environment.process { return nil }
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64(decimal: $0) }), microseconds > 0 else {
            return nil
        }
        return .microseconds(microseconds)
    }

    /// A descriptor that the service manager has opened for this process.
    public struct Descriptor: Hashable, Sendable {
        /// The descriptor.
        public let number: CInt
        /// The name that the service manager gave it, FileDescriptorName= of a socket unit; "unknown" without one.
        public let name: String

        package init(number: CInt, name: String) {
            self.number = number
            self.name = name
        }
    }

    /// The descriptors that were handed to this process, and to no other (LISTEN_PID), now close-on-exec. They are the same
    /// at every call: whoever takes one over must not ask again.
    /// - Parameter unsettingEnvironment: whether to remove the variables, so that children do not see them. The environment
    ///   is the process's; no other thread may be reading it meanwhile.
    /// - Throws: `SystemError` of `fcntl`: `EINVAL` for variables that make no sense, `EBADF` for a number that is not open.
    public static func descriptors(unsettingEnvironment: Bool = false) throws(SystemError) -> [Descriptor] {
        defer {
            if unsettingEnvironment {
                for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
            }
        }
        return try descriptors(.ofProcess, CountingSyscalls())
    }

    package static func descriptors(
        _ environment: ServiceEnvironment, _ kernel: CountingSyscalls
    ) throws(SystemError) -> [Descriptor] {
        guard let process = environment["LISTEN_PID"], let text = environment["LISTEN_FDS"] else { return [] }
        guard let owner = pid_t(decimal: process) else { throw refusal("LISTEN_PID", process) }
        if owner != environment.process { return [] }
        guard let count = CInt(decimal: text), count <= 65536 else { throw refusal("LISTEN_FDS", text) }
        let names = environment["LISTEN_FDNAMES"]?.parts(separatedBy: ":") ?? []
        var descriptors: [Descriptor] = []
        for index in 0..<count {
            let number = environment.firstDescriptor + index
            _ = try kernel.fileControl(number, F_SETFD, FD_CLOEXEC)
                .orThrow(.fileControl, "descriptor \(number) of LISTEN_FDS")
            let name = Int(index) < names.count ? String(names[Int(index)]) : "unknown"
            descriptors.append(Descriptor(number: number, name: name))
        }
        return descriptors
    }

    private static func refusal(_ variable: String, _ value: String) -> SystemError {
        SystemError(.fileControl, EINVAL, detail: "\(variable)='\(value)'")
    }
}

/// What the service manager has put into the environment; a test has one of its own.
package struct ServiceEnvironment {
    package let process: pid_t
    /// SD_LISTEN_FDS_START.
    package let firstDescriptor: CInt
    private let variable: (String) -> String?

    package init(
        process: pid_t = getpid(), firstDescriptor: CInt = 3, _ variable: @escaping (String) -> String?
    ) {
        self.process = process
        self.firstDescriptor = firstDescriptor
        self.variable = variable
    }

    package static var ofProcess: ServiceEnvironment {
        ServiceEnvironment { name in getenv(name).map { String(cString: $0) } }
    }

    subscript(name: String) -> String? { variable(name) }
}
