import CLinux
import ReactorLibc

package struct SpawnRequest {
    /// The child's descriptor 0, 1 or 2.
    package enum StandardStream {
        case inherit
        case null
        /// A copy of this parent descriptor.
        case copy(CInt)
    }

    package var program: String
    /// Without the program itself.
    package var arguments: [String]
    /// `nil` means this process's own.
    package var environment: [String: String]?
    package var workingDirectory: String?
    package var streams: [StandardStream]
    package var hasOwnGroup: Bool

    package init(
        _ program: String, arguments: [String] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, streams: [StandardStream] = [.inherit, .inherit, .inherit],
        hasOwnGroup: Bool = false
    ) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.workingDirectory = workingDirectory
        self.streams = streams
        self.hasOwnGroup = hasOwnGroup
    }

    /// The reason that C would change the request, if any: its strings end at a zero, and its names at `=`.
    var problem: String? {
        let texts = [program] + arguments + (workingDirectory.map { [$0] } ?? [])
        if texts.contains(where: { $0.utf8.contains(0) }) { return "a zero byte in an argument" }
        if program.isEmpty { return "no program" }
        for (name, value) in environment ?? [:] {
            if name.isEmpty || name.utf8.contains(0) || value.utf8.contains(0) || name.utf8.contains(UInt8(ascii: "="))
            {
                return "the environment variable \"\(name)\""
            }
        }
        return nil
    }
}

extension SpawnRequest {
    /// Names the subject of a failed posix_spawn(3), which returns one error for all the child's actions. The subject
    /// is the working directory if entering it fails with that error; otherwise, the program.
    func subject(of code: CInt) -> String {
        guard let workingDirectory, Self.failure(toEnter: workingDirectory) == code else { return program }
        return "\(program) in the working directory \(workingDirectory)"
    }

    /// Returns the child's error on entering this folder, as far as this process can tell.
    private static func failure(toEnter folder: String) -> CInt {
        var status = stat()
        if stat(folder, &status) != 0 { return errno }
        if status.st_mode & S_IFMT != S_IFDIR { return ENOTDIR }
        return faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) == 0 ? 0 : errno
    }
}

package struct SpawnArguments {
    package let request: SpawnRequest
    /// The descriptors to copy to 0, 1 and 2. Each is above 2, so none is overwritten before it is copied. Negative for
    /// inherited or null streams.
    let copies: [CInt]

    /// Returns the child's process number or `-errno`.
    func spawn() -> Int {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        let failure = fill(&actions)
        guard failure == 0 else { return -Int(failure) }
        // Resets the signals as a shell would. The child does not inherit this process's handlers, but would inherit
        // ignored and blocked signals.
        var all = sigset_t()
        var none = sigset_t()
        sigfillset(&all)
        sigemptyset(&none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setsigmask(&attributes, &none)
        var flags = CInt(POSIX_SPAWN_SETSIGDEF) | CInt(POSIX_SPAWN_SETSIGMASK)
        if request.hasOwnGroup {
            posix_spawnattr_setpgroup(&attributes, 0)
            flags |= CInt(POSIX_SPAWN_SETPGROUP)
        }
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var process = pid_t()
        let result = withCStrings([request.program] + request.arguments) { arguments in
            let start = posix_spawnp
            guard let environment = request.environment else {
                return start(&process, request.program, &actions, &attributes, arguments, clinux_environment())
            }
            return withCStrings(environment.map { "\($0.key)=\($0.value)" }) {
                start(&process, request.program, &actions, &attributes, arguments, $0)
            }
        }
        return result == 0 ? Int(process) : -Int(result)
    }

    private func fill(_ actions: inout posix_spawn_file_actions_t) -> CInt {
        for (number, stream) in zip(CInt(0)..., request.streams) {
            var failure: CInt = 0
            switch stream {
            case .inherit: break
            case .null: failure = posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            case .copy: failure = posix_spawn_file_actions_adddup2(&actions, copies[Int(number)], number)
            }
            if failure != 0 { return failure }
        }
        // The library's descriptors are close-on-exec, but the program's may not be. If the C library cannot close
        // these, the child keeps them.
        _ = clinux_spawn_without(&actions, 3)
        return request.workingDirectory.map { clinux_spawn_in(&actions, $0) } ?? 0
    }
}

/// Calls `body` with a null-terminated array of C strings, valid until `body` returns.
private func withCStrings<Value>(
    _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
) -> Value {
    let pointers = texts.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
}
