import ReactorLibc

/// An error from a system call: the call, the `errno`, and the subject. Also thrown when the library itself refuses a
/// call.
///
/// Errors with the same call and code are equal; the detail is for human readers.
public struct SystemError: Error, Sendable, CustomStringConvertible {
    /// The `errno` value, for example `ECONNRESET`.
    public let code: CInt
    /// The call that failed, or that the library refused.
    public let call: SystemCall
    // Placed before the detail, where there is room: at 24 bytes, a `ReadOutcome` fits into a promise.
    /// True when the program cancelled the operation, so the `ECANCELED` means no failure.
    package let isCancellation: Bool
    /// The call's subject, such as an address, or the library's reason; `nil` if call and code suffice.
    public let detail: String?

    /// Creates an error.
    public init(_ call: SystemCall, _ code: CInt, detail: String? = nil) {
        self.call = call
        self.code = code
        self.detail = detail
        isCancellation = false
    }

    /// Creates the `ECANCELED` for an operation that this side ended, perhaps at the program's request.
    package init(ended call: SystemCall, isCancellation: Bool, detail: String) {
        self.call = call
        code = ECANCELED
        self.detail = detail
        self.isCancellation = isCancellation
    }

    /// `bind 127.0.0.1:80: Permission denied (EACCES)`
    public var description: String {
        let subject = detail.map { " " + $0.inOneLine } ?? ""
        let name = Self.names[code].map { " (\($0))" } ?? " (errno \(code))"
        return "\(call)\(subject): \(String(cString: strerror(code)))\(name)"
    }

    /// True for a shortage of descriptors, memory or registrations, which may be temporary.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOMEM, ENOSPC, ENOBUFS].contains(code) }

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
        EDESTADDRREQ: "EDESTADDRREQ", ENOPROTOOPT: "ENOPROTOOPT", E2BIG: "E2BIG", EINTR: "EINTR", ENXIO: "ENXIO",
        EFAULT: "EFAULT", EXDEV: "EXDEV", ENODEV: "ENODEV", EMLINK: "EMLINK", ESPIPE: "ESPIPE", EDOM: "EDOM",
        ERANGE: "ERANGE", EDEADLK: "EDEADLK", ENOLCK: "ENOLCK", ENOTEMPTY: "ENOTEMPTY", EOVERFLOW: "EOVERFLOW",
        EILSEQ: "EILSEQ", ELIBBAD: "ELIBBAD", EBADMSG: "EBADMSG", ENOTTY: "ENOTTY", ENOTBLK: "ENOTBLK",
        ESTALE: "ESTALE", EREMOTEIO: "EREMOTEIO", EINPROGRESS: "EINPROGRESS", EHOSTDOWN: "EHOSTDOWN",
        ENETRESET: "ENETRESET", ESHUTDOWN: "ESHUTDOWN", ETOOMANYREFS: "ETOOMANYREFS", EPROTOTYPE: "EPROTOTYPE",
        EPROTONOSUPPORT: "EPROTONOSUPPORT", ESOCKTNOSUPPORT: "ESOCKTNOSUPPORT", EPFNOSUPPORT: "EPFNOSUPPORT",
        ENODATA: "ENODATA", ETIME: "ETIME", ENOLINK: "ENOLINK", EUSERS: "EUSERS", EUCLEAN: "EUCLEAN",
        EOWNERDEAD: "EOWNERDEAD", ENOTRECOVERABLE: "ENOTRECOVERABLE", ENOMEDIUM: "ENOMEDIUM",
        ECHRNG: "ECHRNG", EL2NSYNC: "EL2NSYNC", EL3HLT: "EL3HLT", EL3RST: "EL3RST", ELNRNG: "ELNRNG",
        EUNATCH: "EUNATCH", ENOCSI: "ENOCSI", EL2HLT: "EL2HLT", EBADE: "EBADE", EBADR: "EBADR", EXFULL: "EXFULL",
        ENOANO: "ENOANO", EBADRQC: "EBADRQC", EBADSLT: "EBADSLT", EBFONT: "EBFONT", ENOSTR: "ENOSTR", ENOSR: "ENOSR",
        ENONET: "ENONET", ENOPKG: "ENOPKG", EREMOTE: "EREMOTE", EADV: "EADV", ESRMNT: "ESRMNT", ECOMM: "ECOMM",
        EMULTIHOP: "EMULTIHOP", EDOTDOT: "EDOTDOT", ENOTUNIQ: "ENOTUNIQ", EBADFD: "EBADFD", EREMCHG: "EREMCHG",
        ELIBACC: "ELIBACC", ELIBSCN: "ELIBSCN", ELIBMAX: "ELIBMAX", ELIBEXEC: "ELIBEXEC", ERESTART: "ERESTART",
        ESTRPIPE: "ESTRPIPE", ENOTNAM: "ENOTNAM", ENAVAIL: "ENAVAIL", EISNAM: "EISNAM", EMEDIUMTYPE: "EMEDIUMTYPE",
        ENOKEY: "ENOKEY", EKEYEXPIRED: "EKEYEXPIRED", EKEYREVOKED: "EKEYREVOKED", EKEYREJECTED: "EKEYREJECTED",
        ERFKILL: "ERFKILL", EHWPOISON: "EHWPOISON", EIDRM: "EIDRM", ENOMSG: "ENOMSG",
    ]
}

extension SystemError: Hashable {
    /// True if call and code are equal.
    public static func == (left: SystemError, right: SystemError) -> Bool {
        left.call == right.call && left.code == right.code
    }

    /// Hashes call and code.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(call)
        hasher.combine(code)
    }
}
