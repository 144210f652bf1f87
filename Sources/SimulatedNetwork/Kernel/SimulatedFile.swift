import CLinux
import ReactorLibc

/// The file behind a simulated descriptor. System calls return the kernel's results, with `-errno` for an error.
class SimulatedFile {
    // Retained, since packets may arrive for a socket whose machine was restarted.
    let process: SimulatedProcess
    /// The descriptor, or −1 once closed. A closed stream lives until its bytes have arrived.
    @exclusivity(unchecked) var number: CInt = -1
    @exclusivity(unchecked) var registrations: [SimulatedEpoll.Registration] = []
    var status = CInt(O_RDWR | O_NONBLOCK)

    static var readable: UInt32 { UInt32(clinux_EPOLLIN) }
    static var writable: UInt32 { UInt32(clinux_EPOLLOUT) }
    static var failed: UInt32 { UInt32(clinux_EPOLLERR) }
    static var hungUp: UInt32 { UInt32(clinux_EPOLLHUP) }
    static var readEnded: UInt32 { UInt32(clinux_EPOLLRDHUP) }
    static var alwaysReported: UInt32 { failed | hungUp }

    init(_ process: SimulatedProcess) { self.process = process }

    var kernel: SimulatedKernel { process.kernel }
    var host: HostStack { process.host }

    /// The events for epoll, wanted or not.
    var readiness: UInt32 { 0 }
    var mode: mode_t { S_IFREG }

    /// Reports a change to the epoll descriptors whose mask has one of `events`; all bits mean a change of state.
    final func notify(_ events: UInt32 = .max) {
        for registration in registrations where registration.mask & events != 0 { registration.enqueue() }
    }

    final func removeRegistrations() {
        for registration in registrations { registration.isRemoved = true }
        registrations = []
    }

    // MARK: Calls

    func bind(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int { -Int(ENOTSOCK) }
    func listen(_ backlog: Int) -> Int { -Int(ENOTSOCK) }
    func connect(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int { -Int(ENOTSOCK) }
    func accept(_ peer: UnsafeMutablePointer<sockaddr_storage>) -> Int { -Int(ENOTSOCK) }
    func send(_ pieces: UnsafeBufferPointer<iovec>) -> Int { -Int(ENOTSOCK) }
    func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int { -Int(ENOTSOCK) }
    func sendMessages(_ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int { -Int(ENOTSOCK) }
    func receiveMessages(_ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int { -Int(ENOTSOCK) }
    func shutdown(_ how: CInt) -> Int { -Int(ENOTSOCK) }
    func localName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int { -Int(ENOTSOCK) }
    func peerName(_ name: UnsafeMutablePointer<sockaddr_storage>) -> Int { -Int(ENOTSOCK) }
    func getOption(_ level: CInt, _ name: CInt, _ value: UnsafeMutablePointer<CInt>) -> Int { -Int(ENOTSOCK) }
    func setOption(_ level: CInt, _ name: CInt, _ bytes: UnsafeRawBufferPointer) -> Int { -Int(ENOTSOCK) }
    /// The numbers of bytes to be read, and of unacknowledged bytes.
    var waiting: (incoming: Int, outgoing: Int) { (0, 0) }
    /// Closes the file. No call follows.
    func close() {}
}

/// A file in the simulated file system: a socket, or the lock beside it. It has only what a Unix path needs.
final class SimulatedNode {
    let number: ino_t
    var mode: mode_t
    /// The holder of the flock(2) lock.
    weak var lockHolder: SimulatedFile?
    weak var socket: UnixStream?

    init(_ number: ino_t, _ mode: mode_t) {
        self.number = number
        self.mode = mode
    }

    func describe(_ status: UnsafeMutablePointer<stat>) {
        status.pointee = stat()
        status.pointee.st_dev = 1
        status.pointee.st_ino = number
        status.pointee.st_mode = mode
    }
}

/// An open file in the simulated file system.
final class OpenNode: SimulatedFile {
    let node: SimulatedNode

    init(_ process: SimulatedProcess, _ node: SimulatedNode) {
        self.node = node
        super.init(process)
    }

    override var mode: mode_t { node.mode }

    override func close() { if node.lockHolder === self { node.lockHolder = nil } }
}
