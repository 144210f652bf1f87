import ReactorLibc
import Reactor

/// One direction of a link: latency, bandwidth and faults.
final class SimulatedWay {
    /// Retained in a cycle, which `SimulatedKernel.end` breaks.
    private let network: SimulatedKernel
    @exclusivity(unchecked) var settings = LinkSettings()
    /// True when packets wait, as at a stopped router. Datagrams are lost instead if `losesDatagrams`.
    @exclusivity(unchecked) private(set) var isHeldUp = false
    private(set) var losesDatagrams = false
    private var held: [() -> Void] = []
    /// The number of packets in transit, none of which may overtake another.
    @exclusivity(unchecked) private var inTransit = 0
    @exclusivity(unchecked) private var lastArrival: Int64 = 0
    private var busyUntil: Int64 = 0

    init(_ network: SimulatedKernel) { self.network = network }

    /// True when a packet arrives in the call that sends it.
    var isInstant: Bool {
        settings.delay.upperBound == 0 && settings.bandwidth == nil && !isHeldUp && inTransit == 0 && settings.loss == 0
    }

    /// Returns how many bytes of a stream the next packet may have.
    func nextSegment() -> Int {
        switch settings.cut {
        case .whole: settings.mtu == 65_535 ? .max : max(settings.mtu - 40, 1)
        case .everyByte: 1
        case .segments(let size): max(size, 1)
        case .random: 1 + network.random.number(below: network.random.happens(0.5) ? 16 : 2048)
        }
    }

    // MARK: Streams

    /// Sends a stream's segment, which arrives in order, and is repeated if lost.
    /// - Parameter packet: the transcript's entry; `nil` for an acknowledgement.
    func send(
        _ packet: Packet?, from: SocketAddress, to: SocketAddress, _ arrive: @escaping () -> Void
    ) {
        if isHeldUp {
            if let packet { note(packet, from, to, .held) }
            return held.append(arrive)
        }
        var delay = sampleLatency()
        if let packet {
            delay += transmissionTime(packet.size)
            // A lost segment is repeated after 200 ms, then after twice that. (In the kernel, later arrivals hasten
            // this.)
            var attempts = 0
            while attempts < 6, network.random.happens(settings.loss) {
                delay += 200_000_000 << attempts
                attempts += 1
            }
        }
        var arrival = max(network.now + delay, lastArrival)
        // Pieces that arrive at the same moment would be read as one.
        if packet?.kind == .data, settings.cut != .whole, arrival <= lastArrival || inTransit > 0 {
            arrival = max(arrival, lastArrival + 1)
        }
        if let packet { note(packet, from, to, arrival > network.now ? .arrives(at: arrival) : .arrived) }
        if packet?.kind == .data, settings.cut != .whole { arrival = max(arrival, network.now + 1) }
        deliver(at: arrival, arrive)
    }

    private func deliver(at arrival: Int64, _ arrive: @escaping () -> Void) {
        if arrival <= network.now && inTransit == 0 { return arrive() }
        lastArrival = max(lastArrival, arrival)
        inTransit += 1
        network.at(arrival) { [self] in
            inTransit -= 1
            arrive()
        }
    }

    func reset(_ receiver: TCPSocket, from sender: TCPSocket) {
        guard let from = sender.local, let to = receiver.local else { return }
        send(Packet(.reset), from: from, to: to) { receiver.resetDidArrive() }
    }

    // MARK: Datagrams

    /// - Parameter bytes: `nil` for the message that a port is unreachable.
    func sendDatagram(_ bytes: [UInt8]?, from: SocketAddress, to: SocketAddress, _ arrive: @escaping () -> Void) {
        let packet = bytes.map { Packet(.datagram, $0[...]) } ?? Packet(.portUnreachable)
        if isHeldUp {
            note(packet, from, to, losesDatagrams ? .lost : .held)
            if !losesDatagrams { held.append(arrive) }
            return
        }
        for _ in 0..<(network.random.happens(settings.duplication) ? 2 : 1) {
            if network.random.happens(settings.loss) {
                note(packet, from, to, .lost)
                continue
            }
            var arrival = network.now + sampleLatency() + transmissionTime(packet.size)
            // Unless reordered, a datagram arrives no earlier than the previous one.
            if network.random.happens(settings.reordering) {
                arrival += max(sampleLatency(), 1_000_000)
                note(packet, from, to, .arrives(at: arrival))
                network.at(arrival, arrive)
                continue
            }
            arrival = max(arrival, lastArrival)
            note(packet, from, to, arrival > network.now ? .arrives(at: arrival) : .arrived)
            deliver(at: arrival, arrive)
        }
    }

    // MARK: Holding

    func hold(losesDatagrams: Bool) {
        isHeldUp = true
        self.losesDatagrams = losesDatagrams
    }

    func release() {
        if !isHeldUp { return }
        isHeldUp = false
        let packets = held
        held = []
        for packet in packets { deliver(at: max(network.now + sampleLatency(), lastArrival), packet) }
    }

    private func sampleLatency() -> Int64 {
        let delay = settings.delay
        return delay.lowerBound == delay.upperBound ? delay.lowerBound : network.random.number(in: delay)
    }

    private func transmissionTime(_ size: Int) -> Int64 {
        guard let bandwidth = settings.bandwidth else { return 0 }
        let begin = max(network.now, busyUntil)
        busyUntil = begin + Int64(Double(size) * 1_000_000_000 / Double(max(bandwidth, 1)))
        return busyUntil - network.now
    }

    private func note(_ packet: Packet, _ from: SocketAddress, _ to: SocketAddress, _ fate: Transcript.Fate) {
        network.transcript.note(network.now, from, to, packet, fate)
    }
}
