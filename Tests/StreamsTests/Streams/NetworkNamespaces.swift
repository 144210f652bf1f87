import Glibc
import Promises
import Reactor

@testable import PromisesTestSupport

/// Two machines and a cable: network namespaces of the calling thread, joined by a pair of virtual interfaces. Each knows the
/// other's link address, so a cable that is cut is like one that is cut behind the next router: nothing comes back, and no error
/// says so.
///
/// A socket belongs to the namespace in which it was made, so that one loop on one thread can hold both ends. The kernel removes
/// the namespaces and the interfaces with the last socket, whatever becomes of the test.
final class NetworkNamespaces {
    static let near = "10.77.0.1"
    static let far = "10.77.0.2"
    /// In the network of both, and of neither: no link address is known for it, and nothing answers for it.
    static let nowhere = "10.77.0.3"

    private let original: CInt
    private let nearSide: CInt
    private let farSide: CInt

    /// The calling thread is in the near one from now on.
    init() throws(SystemError) {
        let original = try Self.present()
        do throws(SystemError) {
            nearSide = try Self.fresh()
        } catch {
            // The thread has not left the original one, and may lack the right to enter any.
            close(original)
            throw error
        }
        do throws(SystemError) {
            farSide = try Self.fresh()
        } catch {
            Self.enter(original)
            for fd in [original, nearSide] { close(fd) }
            throw error
        }
        self.original = original
        Self.enter(nearSide)
        try ip("link add near0 address 02:00:00:00:00:01 type veth peer name far0 address 02:00:00:00:00:02")
        // iproute2 takes what has a slash for the path of a namespace. $PPID is this process.
        try shell("ip link set far0 netns /proc/$PPID/fd/\(farSide)")
        try configure("near0", Self.near, peer: Self.far, "02:00:00:00:00:02")
        try atFarSide { () throws(SystemError) in
            try configure("far0", Self.far, peer: Self.near, "02:00:00:00:00:01")
        }
    }

    /// The calling thread is where it was before.
    deinit {
        Self.enter(original)
        for fd in [original, nearSide, farSide] { close(fd) }
    }

    /// Runs `body` in the far namespace: the sockets that it makes are there.
    func atFarSide<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        Self.enter(farSide)
        defer { Self.enter(nearSide) }
        return try body()
    }

    /// At the far end, so that the near side keeps its route and sends into the void. Neither side is told.
    func cutTheCable() throws(SystemError) { try atFarSide { () throws(SystemError) in try ip("link set far0 down") } }

    func mendTheCable() throws(SystemError) {
        try atFarSide { () throws(SystemError) in
            try ip("link set far0 up")
            try ip("neigh replace \(Self.near) lladdr 02:00:00:00:00:01 dev far0 nud permanent")
        }
    }

    /// The near side asks for an unknown link address once, for 100 ms, instead of three times, for a second each.
    func resolveImpatiently() throws(SystemError) {
        // Not in /proc/sys, which containers have read-only.
        try ip("ntable change name arp_cache dev near0 retrans 100 mcast_probes 1")
    }

    private func configure(
        _ device: String, _ address: String, peer: String, _ link: String
    ) throws(SystemError) {
        // The kernel reports by it, to its own sockets, that there is no such neighbour.
        try ip("link set lo up")
        try ip("addr add \(address)/24 dev \(device)")
        try ip("link set \(device) up")
        try ip("neigh replace \(peer) lladdr \(link) dev \(device) nud permanent")
    }

    // MARK: Whether there can be any

    /// Why a test can have none: not root, a container that may not, no iproute2. `nil` if it can.
    static let obstacle: String? = {
        do throws(SystemError) {
            _ = try NetworkNamespaces()
            return nil
        } catch { return "no network namespaces here: \(error)" }
    }()

    static var areAvailable: Bool { obstacle == nil }

    // MARK: Calls

    private static func present() throws(SystemError) -> CInt {
        // The thread's, not the process's.
        let fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { throw SystemError(.open, errno, detail: "/proc/thread-self/ns/net") }
        return fd
    }

    private static func fresh() throws(SystemError) -> CInt {
        // CLONE_NEWNET, whose name needs _GNU_SOURCE.
        guard leave(0x4000_0000) == 0 else { throw SystemError(.open, errno, detail: "unshare") }
        return try present()
    }

    private static func enter(_ fd: CInt) {
        precondition(join(fd, 0x4000_0000) == 0, "setns: errno \(errno)")
    }

    /// Runs `ip` with these arguments in the namespace of this thread.
    private func ip(_ arguments: String) throws(SystemError) { try shell("ip \(arguments)") }

    private func shell(_ command: String) throws(SystemError) {
        let words = ["/bin/sh", "-c", "{ \(command); } 2>/dev/null"]
        let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, "/bin/sh", nil, nil, arguments, environ)
        guard failure == 0 else { throw SystemError(.spawn, failure, detail: "/bin/sh") }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
        guard status == 0 else { throw SystemError(.spawn, EPERM, detail: command) }
    }
}

// Hidden from Swift without _GNU_SOURCE.
private let leave = unsafeBitCast(dlsym(nil, "unshare"), to: (@convention(c) (CInt) -> CInt).self)
private let join = unsafeBitCast(dlsym(nil, "setns"), to: (@convention(c) (CInt, CInt) -> CInt).self)
