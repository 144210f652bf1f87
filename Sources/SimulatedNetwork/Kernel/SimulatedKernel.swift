import ReactorLibc
import Reactor

/// The state shared by all machines: descriptors, packets in transit, links, dice.
final class SimulatedKernel {
    let clock: VirtualClock
    @exclusivity(unchecked) var random: SeededRandom
    @exclusivity(unchecked) var transcript = Transcript()
    @exclusivity(unchecked) private var events = EventQueue()
    @exclusivity(unchecked) private var files: [SimulatedFile?] = []
    private var freeNumbers: [Int] = []
    private var hosts: [SocketAddress: HostStack] = [:]
    private var ways: [WayKey: SimulatedWay] = [:]
    private var streams: [TCPSocket] = []
    private var nodes: ino_t = 0
    /// The number of arrived packets, and of system calls that moved bytes or connections.
    @exclusivity(unchecked) var moves = 0

    /// The first simulated descriptor. Real descriptors this large are refused, so both kinds are distinct.
    static var firstNumber: CInt { 1 << 14 }

    private struct WayKey: Hashable {
        let from: ObjectIdentifier
        let to: ObjectIdentifier
    }

    init(seed: UInt64) {
        clock = VirtualClock()
        random = SeededRandom(seed: seed)
    }

    // MARK: Time

    var now: Int64 { clock.now.nanoseconds }
    var nextEvent: Int64? { events.nextMoment }

    func at(_ moment: Int64, _ body: @escaping () -> Void) { events.add(at: moment, body) }

    func after(_ delay: Duration, _ body: @escaping () -> Void) {
        at(clock.now.advanced(by: delay).nanoseconds, body)
    }

    func runDueEvents() {
        while let body = events.takeDue(at: now) {
            moves &+= 1
            body()
        }
    }

    // MARK: Descriptors

    func add(_ file: SimulatedFile) -> CInt {
        let index: Int
        if let free = freeNumbers.popLast() {
            index = free
            files[index] = file
        } else {
            index = files.count
            files.append(file)
        }
        file.number = Self.firstNumber + CInt(index)
        return file.number
    }

    func file(_ number: CInt) -> SimulatedFile? {
        let index = Int(number - Self.firstNumber)
        return index >= 0 && index < files.count ? files[index] : nil
    }

    func remove(_ file: SimulatedFile) {
        let index = Int(file.number - Self.firstNumber)
        files[index] = nil
        freeNumbers.append(index)
        file.removeRegistrations()
        file.number = -1
    }

    func makeNodeNumber() -> ino_t {
        nodes += 1
        return nodes
    }

    // MARK: Machines

    func add(_ host: HostStack) { for address in host.addresses { hosts[address] = host } }

    /// Returns the machine with this address, as seen by `host`.
    func host(of address: SocketAddress, from host: HostStack) -> HostStack? {
        address.isLoopback ? host : hosts[address.with(port: 0)]
    }

    func name(of address: SocketAddress) -> String {
        guard !address.isUnix, let host = hosts[address.with(port: 0)] else { return address.description }
        return host.addresses.first == address.with(port: 0)
            ? "\(host.name):\(address.port)" : "\(host.name)/\(address)"
    }

    func way(from sender: HostStack, to receiver: HostStack) -> SimulatedWay {
        let key = WayKey(from: ObjectIdentifier(sender), to: ObjectIdentifier(receiver))
        if let way = ways[key] { return way }
        let way = SimulatedWay(self)
        ways[key] = way
        return way
    }

    /// Records a connection, so that a link can break it.
    func noteStream(_ stream: TCPSocket) {
        if streams.count >= 64, streams.count.nonzeroBitCount == 1 { streams.removeAll { !$0.isConnected } }
        streams.append(stream)
    }

    func streams(between first: HostStack, and second: HostStack) -> [TCPSocket] {
        streams.removeAll { !$0.isConnected }
        return streams.filter { stream in
            (stream.host === first && stream.remoteHost === second)
                || (stream.host === second && stream.remoteHost === first)
        }
    }

    /// Ends a process and its files without notice.
    func vanish(_ process: SimulatedProcess) {
        process.isGone = true
        for file in files {
            guard let file, file.process === process else { continue }
            (file as? TCPSocket)?.vanish()
            remove(file)
        }
    }

    /// Breaks reference cycles.
    func end() {
        events = EventQueue()
        for stream in streams { stream.forgetPeer() }
        for file in files { (file as? TCPSocket)?.forgetPeer() }
        for file in files {
            file?.removeRegistrations()
            file?.close()
        }
        files = []
        streams = []
        ways = [:]
        hosts = [:]
    }
}
