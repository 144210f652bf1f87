@testable import PromisesTestSupport

/// One server and its clients on one loop, all their actions, and the failures.
final class SoakRound {
    let seed: UInt64
    let net: Network
    let faults: SoakFaults
    let server: Server
    /// The listener's stream. Some clients do without a listener.
    let stream: Stream
    /// The folder of a Unix path.
    let folder: Folder?
    /// True if clients of a Unix listener have addresses, which identify a conversation.
    let namesClients: Bool
    let backlog: Int
    /// True if a client may wait for a place so long that it gives up.
    var isCrowded: Bool { backlog < Self.wideBacklog }
    private static let wideBacklog = 4096
    var dice: SplitMix64
    private let isVirtual: Bool
    private(set) var complaints: [String] = []
    /// The unit of all times, in microseconds.
    let pause: Int
    private(set) var peers: [SoakPeer] = []
    /// Clients of all kinds, by their streams.
    var connections: [String: Int] = [:]
    /// The number of named conversations, and of those inside.
    var names = 0
    var insides = 0
    /// Watched promises, and those that have settled.
    private var begun = 0
    private var settled = 0

    /// The outcome of a round.
    struct Outcome {
        var complaints: [String] = []
        var connections: [String: Int] = [:]
        var faults: [String: Int] = [:]
        /// Conversations that nothing has hit, and that were completed.
        var whole = 0
        var bytes = 0
    }

    init(seed: UInt64, isVirtual: Bool, _ net: Network) {
        self.seed = seed
        self.isVirtual = isVirtual
        self.net = net
        faults = SoakFaults(seed: seed)
        dice = SplitMix64(seed &+ 1 << 40)
        server = dice.pick(Server.allCases)
        stream = dice.pick(Stream.listening)
        folder = stream == .path ? Folder() : nil
        if stream == .tcp {
            (namesClients, backlog) = (false, Self.wideBacklog)
        } else {
            namesClients = !dice.once(in: 4)
            backlog = dice.once(in: 4) ? 1 + dice.below(3) : Self.wideBacklog
        }
        pause = isVirtual ? 2000 : 300
        net.ledger.sendsPiecesSingly = false
        net.kernel = faults.syscalls()
    }

    /// Runs it on its own loop.
    static func outcome(seed: UInt64, isVirtual: Bool) -> Outcome {
        var outcome = Outcome()
        var lines: [String] = []
        var ledger = Ledger()
        do {
            lines = try logged {
                try withNetwork(clock: isVirtual ? VirtualClock() : nil, turns: .max) { net in
                    let round = SoakRound(seed: seed, isVirtual: isVirtual, net)
                    do { try round.run() } catch { round.complain("the loop: \(error)") }
                    outcome = round.outcome
                    ledger = net.ledger
                }
            }
        } catch { outcome.complaints.append("\(error)") }
        let usual = [
            "cannot accept connections for now", "cannot watch a descriptor for now: epoll_ctl",
            // From a write in progress when the chain that waited for it was cancelled: it then failed, or the
            // connection was aborted, and no handler was left.
            "unhandled rejection: send", "unhandled rejection: write",
        ]
        outcome.complaints += lines.filter { line in !usual.contains { line.hasPrefix($0) } }
        outcome.complaints += ledger.open.map { "descriptor \($0) was left open" } + ledger.strays
        let name = "SOAK_SEED=\(seed), in \(isVirtual ? "virtual" : "real") time: "
        outcome.complaints = outcome.complaints.map { name + $0 }
        return outcome
    }

    private var outcome: Outcome {
        Outcome(
            complaints: complaints + faults.complaints, connections: connections, faults: faults.counts,
            whole: wholeClients + peers.count { $0.isAnswered },
            bytes: bytesOfClients + peers.reduce(0) { $0 + $1.received })
    }

    var wholeClients = 0
    var bytesOfClients = 0

    func complain(_ text: String) { if complaints.count < 20 { complaints.append(text) } }

    /// A random time of at most this number of pauses.
    func time(_ pauses: Int) -> Duration { .microseconds(dice.below(pause * pauses)) }

    func text() -> SoakText {
        let most = faults.most
        let size = dice.pick(most == 1 ? [2, 100, 400] : most < 1000 ? [2, 500, 10_000] : [2, 500, 20_000, 300_000])
        return SoakText(1 + dice.below(size), isLines: server == .lines, &dice)
    }

    /// Returns the promise, and checks that it settles once.
    func watch<T>(_ promise: Promise<T>, _ name: String) -> Promise<T> {
        begun += 1
        var isSettled = false
        return promise.ensure { [self] in
            if isSettled { complain("\(name) settled twice") }
            isSettled = true
            settled += 1
        }
    }

    // MARK: The round

    private func run() throws {
        let listener = try listen()
        faults.listener = net.ledger.open.first!
        faults.isOn = true
        let service = serve(listener)
        startPeers(listener.localAddress)
        let work = (0..<dice.below(6)).map { _ in client(listener.localAddress) }
        if dice.once(in: 6) {
            net.loop.schedule(after: time(60)) { [self] in
                faults.allAreHarmed = true
                end(listener, service)
            }
        }
        try drive("the clients") { self.peers.allSatisfy(\.isOver) && !work.contains { $0.isPending } }
        end(listener, service)
        try drive("the service") { !service.isPending && self.begun == self.settled }
        faults.isOn = false
        try drive("the rest") { !self.net.loop.isAlive }
        checkRest()
    }

    private func startPeers(_ address: SocketAddress) {
        for _ in 0..<1 + dice.below(12) {
            let manner = dice.pick(SoakPeer.Manner.allCases)
            let text: SoakText
            switch manner {
            case .byteByByte: text = SoakText(1 + dice.below(60), isLines: server == .lines, &dice)
            case .deaf: text = SoakText(10_000_000, isLines: server == .lines, &dice)
            default: text = self.text()
            }
            let peer = SoakPeer(manner, text, pause: pause, faults, &dice) { [unowned self] in complain($0) }
            peer.start(to: address, from: clientAddress(), on: net.loop)
            peers.append(peer)
            connections[stream.rawValue, default: 0] += 1
        }
    }

    /// Turns until `isDone`; a watchdog reports if that never comes.
    ///
    /// A child that another test starts has copies of all descriptors until its exec, so the end of a closed one
    /// arrives only after that. Virtual time does not wait for it: a round without progress is late only when real time
    /// has passed too.
    private func drive(_ what: String, until isDone: () -> Bool) throws {
        var (isLate, seen) = (false, -1)
        var lastProgress = ContinuousClock.now
        let limit: Duration = isVirtual ? .seconds(3600) : .seconds(20)
        let watchdog = net.loop.schedule(every: limit) { [self] in
            if seen != faults.progress { (seen, lastProgress) = (faults.progress, .now) }
            isLate = lastProgress.duration(to: .now) >= patience
            // Virtual time jumps to the next timer at once, which may be far away.
            if isVirtual { poll(nil, 0, 1) }
        }
        watchdog.unref()
        while !isDone() && !isLate { try net.loop.turn(.wait) }
        watchdog.cancel()
        guard isLate else { return }
        complain("\(what) never ended; \(begun - settled) promises are pending; \(net.loop.keepAliveReport)")
        faults.isOn = false
    }

    private func checkRest() {
        let metrics = net.loop.metrics
        if begun != settled { complain("\(begun - settled) promises are pending") }
        if metrics.waitingHandlers != 0 { complain("\(metrics.waitingHandlers) handlers wait") }
        if metrics.timers != 0 { complain("\(metrics.timers) timers are left") }
        if metrics.descriptors != 0 || net.loop.isAlive { complain("left: \(net.loop.keepAliveReport)") }
        if let folder, !folder.names.isEmpty { complain("files are left: \(folder.names)") }
        // The loop's own descriptors.
        if net.ledger.open.count > 3 { complain("\(net.ledger.open.count) descriptors are open") }
        // A timer in virtual time takes three turns, one in which the clock jumps, its own, and one for its output, and
        // an interrupted wait one more. A loop that spins makes thousands.
        let things = faults.progress + metrics.timersFired
        if metrics.turns > 100 + 4 * things { complain("\(metrics.turns) turns for \(things) things to do") }
    }
}
