import Glibc

/// What the kernel refused, or what the library refused in the kernel's words: which call, which `errno`, about
/// what.
///
/// Two errors are equal when call and code are: the detail is for people.
public struct SystemError: Error, Sendable, CustomStringConvertible {
    /// The `errno` value, for example `ECONNRESET`.
    public let code: CInt
    /// The system call that failed or, where the library refused before calling, would have been made.
    public let call: SystemCall
    /// What the call was about, such as an address or the reason why the library refused; `nil` where code and call
    /// say it all.
    public let detail: String?

    /// An error of `call` with the `errno` value `code`.
    public init(_ call: SystemCall, _ code: CInt, detail: String? = nil) {
        self.call = call
        self.code = code
        self.detail = detail
    }

    /// `bind 127.0.0.1:80: Permission denied (EACCES)`
    public var description: String {
        let subject = detail.map { " " + $0 } ?? ""
        let name = Self.names[code].map { " (\($0))" } ?? " (errno \(code))"
        return "\(call)\(subject): \(String(cString: strerror(code)))\(name)"
    }

    /// Whether descriptors, memory or registrations have run out, which may pass.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOMEM, ENOSPC, ENOBUFS].contains(code) }

    /// The same error with something to say about its subject.
    package func about(_ detail: String) -> SystemError { SystemError(call, code, detail: detail) }

    private static let names: [CInt: String] = [
        EACCES: "EACCES", EADDRINUSE: "EADDRINUSE", EADDRNOTAVAIL: "EADDRNOTAVAIL", EAFNOSUPPORT: "EAFNOSUPPORT",
        EAGAIN: "EAGAIN", EALREADY: "EALREADY", EBADF: "EBADF", EBUSY: "EBUSY", ECANCELED: "ECANCELED",
        ECONNABORTED: "ECONNABORTED", ECONNREFUSED: "ECONNREFUSED", ECONNRESET: "ECONNRESET", EEXIST: "EEXIST",
        EHOSTUNREACH: "EHOSTUNREACH", EINVAL: "EINVAL", EMFILE: "EMFILE", ENETUNREACH: "ENETUNREACH",
        ENFILE: "ENFILE", ENOBUFS: "ENOBUFS", ENOENT: "ENOENT", ENOMEM: "ENOMEM", ENOSYS: "ENOSYS",
        ENOTCONN: "ENOTCONN", ENOTSOCK: "ENOTSOCK", EPERM: "EPERM", EPIPE: "EPIPE", EPROTO: "EPROTO",
        ETIMEDOUT: "ETIMEDOUT", EISCONN: "EISCONN", ENETDOWN: "ENETDOWN", EMSGSIZE: "EMSGSIZE", ENOSPC: "ENOSPC",
        ECHILD: "ECHILD", EDQUOT: "EDQUOT", EFBIG: "EFBIG", EIO: "EIO", EISDIR: "EISDIR", ELOOP: "ELOOP",
        ENAMETOOLONG: "ENAMETOOLONG", ENOTDIR: "ENOTDIR", ENOTSUP: "ENOTSUP", EROFS: "EROFS", ESRCH: "ESRCH",
        ENOEXEC: "ENOEXEC", ETXTBSY: "ETXTBSY",
        EDESTADDRREQ: "EDESTADDRREQ", ENOPROTOOPT: "ENOPROTOOPT",
    ]
}

extension SystemError: Hashable {
    /// Equal when call and code are.
    public static func == (left: SystemError, right: SystemError) -> Bool {
        left.call == right.call && left.code == right.code
    }

    /// Hashes call and code.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(call)
        hasher.combine(code)
    }
}
