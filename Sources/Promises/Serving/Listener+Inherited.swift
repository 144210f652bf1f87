import Glibc
import Reactor

extension Listener {
    /// A listener on the sockets that the service manager has opened for this process: all of them as one, or those
    /// named `name` (LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES). It takes the sockets over: call it once for each. See
    /// sd_listen_fds(3).
    /// - Parameters:
    ///   - name: FileDescriptorName= of the socket unit.
    ///   - unsettingEnvironment: whether to remove the variables, so that child processes do not see them. The
    ///     environment belongs to the whole process; no other thread may read it meanwhile.
    /// - Returns: `nil` if there is no such socket, for instance without a service manager.
    /// - Throws: `SystemError` of `fcntl`: `EINVAL` for invalid variables, `EBADF` for a number that is not open; or as
    ///   `init(adopting:)`. Nothing is taken over then.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func inherited(
        named name: String? = nil, unsettingEnvironment: Bool = false
    ) throws(SystemError) -> Listener? {
        try inherited(named: name, ServiceManager.descriptors(unsettingEnvironment: unsettingEnvironment))
    }

    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    package static func inherited(
        named name: String?, _ descriptors: [ServiceManager.Descriptor]
    ) throws(SystemError) -> Listener? {
        let loop = EventLoop.ofCurrentThread
        var sockets: [ListeningSocket] = []
        for descriptor in descriptors where name == nil || descriptor.name == name {
            sockets.append(try ListeningSocket(adopting: descriptor.number, loop.kernel))
        }
        if sockets.isEmpty { return nil }
        let listener = Listener(sockets, on: loop)
        listener.leavesBacklog = true
        return listener
    }
}
