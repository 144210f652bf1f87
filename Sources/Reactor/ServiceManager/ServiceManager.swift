import CLinux
import ReactorLibc

/// Notifications, passed descriptors and the watchdog for systemd and compatible service managers. Does nothing without
/// a manager. See sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).
public enum ServiceManager {
    /// A notification for the service manager.
    public enum State: Hashable, Sendable {
        /// The service has started.
        case ready
        /// The service is stopping.
        case stopping
        /// The service is alive; see `watchdogInterval`.
        case watchdog
        /// A status line for human readers. Line breaks become spaces.
        case status(String)
        /// Any other text, sent unchanged: `"MAINPID=\(process)"`.
        case other(String)

        /// The text to send: `READY=1`.
        package var text: String {
            switch self {
            case .ready: "READY=1"
            case .stopping: "STOPPING=1"
            case .watchdog: "WATCHDOG=1"
            case .status(let text): "STATUS=\(String(text.map { $0.isNewline ? " " : $0 }))"
            case .other(let text): text
            }
        }
    }

    /// Notifies the service manager with one datagram to the socket in NOTIFY_SOCKET, without blocking. The first call
    /// opens a descriptor and keeps it, so later calls need no free descriptor. Any thread.
    /// - Returns: false if there is no service manager.
    /// - Throws: `SystemError`: `EINVAL` if NOTIFY_SOCKET is not a Unix address, or any error from socket(2) or
    ///   sendmmsg(2), such as `EAGAIN` if the manager does not keep up.
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
        let text = Array(states.map(\.text).joined(separator: "\n").utf8)
        let fd = try socket.withLock { $0.open(for: address, kernel) }.get()
        _ = try text.withUnsafeBytes { DatagramBatch.send($0, to: address, fd, kernel) }
            .orThrow(.sendMessages, address.description)
        return true
    }

    private static let socket = LockedValue.ofProcess(KeptSocket())

    /// Never closed.
    private struct KeptSocket {
        private var fd: CInt = -1
        private var file = (device: dev_t(), inode: ino_t())

        /// Opens the socket, unless its number still refers to it. Other code may have closed the number.
        mutating func open(for address: SocketAddress, _ kernel: CountingSyscalls) -> Result<CInt, SystemError> {
            var status = stat()
            if fd >= 0, kernel.fileStatus(fd, &status) == 0, file == (status.st_dev, status.st_ino) {
                return .success(fd)
            }
            return Result { () throws(SystemError) in
                fd = try Socket(clinux_SOCK_DGRAM, for: address, kernel).fd
                _ = try kernel.fileStatus(fd, &status).orThrow(.fileStatus)
                file = (status.st_dev, status.st_ino)
                return fd
            }
        }
    }

    /// The time within which the service manager expects `.watchdog`, if it does. The manager ends a late process, so
    /// notify twice as often.
    public static var watchdogInterval: Duration? { watchdogInterval(.ofProcess) }

    package static func watchdogInterval(_ environment: ServiceEnvironment) -> Duration? {
        if let process = environment["WATCHDOG_PID"], pid_t(decimal: process) != environment.process { return nil }
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64(decimal: $0) }), microseconds > 0 else {
            return nil
        }
        return .microseconds(microseconds)
    }

    package struct Descriptor: Hashable, Sendable {
        package let number: CInt
        /// The name that the service manager gave: FileDescriptorName= in the socket unit, or "unknown".
        package let name: String

        package init(number: CInt, name: String) {
            self.number = number
            self.name = name
        }
    }

    /// Takes the descriptors that the service manager passed, and makes them close-on-exec. Each call returns the same
    /// descriptors.
    package static func descriptors(unsettingEnvironment: Bool = false) throws(SystemError) -> [Descriptor] {
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
