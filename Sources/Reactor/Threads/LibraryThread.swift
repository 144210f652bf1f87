import CLinux
import ReactorLibc

/// Starts the library's own threads, named and with signals blocked.
package enum LibraryThread {
    /// A thread for pthread_join and pthread_detach, and the value before the thread exists.
    #if canImport(Musl)
    package typealias Handle = pthread_t?
    static var noHandle: Handle { nil }
    #else
    package typealias Handle = pthread_t
    static var noHandle: Handle { 0 }
    #endif

    /// Starts a thread like pthread_create. The thread runs `LibraryThread.run` with the address. Returns 0 or an
    /// errno.
    package typealias Create = @Sendable (UnsafeMutablePointer<Handle>, UnsafeMutableRawPointer) -> CInt

    package static let create: Create = { pthread_create($0, nil, { LibraryThread.run($0) }, $1) }

    /// Returns 0 or an errno.
    static func start(
        _ name: String, _ handle: inout Handle, _ create: Create, _ body: @escaping @Sendable () -> Void
    ) -> CInt {
        let address = Unmanaged.passRetained(ThreadStart(name, body))
        // Signals are for the program's own threads. `SignalRegistry` unblocks watched ones later.
        var blocked = sigset_t()
        sigfillset(&blocked)
        for fault in faults { sigdelset(&blocked, fault) }
        var before = sigset_t()
        // A new thread inherits its starter's signal mask.
        pthread_sigmask(SIG_SETMASK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let failure = create(&handle, address.toOpaque())
        if failure != 0 { address.release() }
        return failure
    }

    /// The signals left unblocked: a blocked fault would end the process without a message.
    static var faults: [CInt] { [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT] }

    package static func run(_ address: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let address else { return nil }
        let beginning = Unmanaged<ThreadStart>.fromOpaque(address).takeRetainedValue()
        pthread_setname_np(pthread_self(), cut(beginning.name, to: 15))
        beginning.body()
        return nil
    }

    /// `name-1`, cut to the 15 bytes that Linux keeps.
    static func name(_ name: String, number: Int) -> String {
        let ending = "-\(number)"
        return cut(name, to: 15 - ending.utf8.count) + ending
    }

    private static func cut(_ name: String, to length: Int) -> String {
        var cut = name
        while cut.utf8.count > length, !cut.isEmpty { cut.removeLast() }
        return cut
    }

    private final class ThreadStart: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
