import CLinux
import Glibc
import SimulatedNetwork

/// A random program of socket calls. Descriptors are the numbers of the calls that created them.
struct SocketProgram: CustomStringConvertible {
    enum Kind: CaseIterable { case tcp4, tcp6, udp4, unix }

    enum Target {
        /// The address of a socket, from getsockname(2).
        case socket(Int)
        /// A port or a name without a listener.
        case nobody
    }

    enum Sending: CaseIterable { case write, writeVector, sendVector }

    enum Call {
        case socket(Kind)
        case pair
        case bind(Int, Target?)
        case listen(Int, Int)
        case connect(Int, Target)
        case accept(Int)
        case send(Int, Int)
        /// With what sends bytes, and the sizes of the pieces.
        case sendPieces(Int, Sending, [Int])
        /// As many connections at once as that.
        case burst(Int, Int)
        case sendTo(Int, Target, Int)
        case receive(Int, Int)
        case read(Int, Int)
        case receiveMessage(Int, Int)
        case shutdown(Int, CInt)
        case close(Int)
        case error(Int)
        case isListening(Int)
        case resetOnClose(Int)
        case reuseAddress(Int)
        case setOption(Int, level: CInt, name: CInt)
        case getOption(Int, level: CInt, name: CInt)
        case names(Int)
        case waiting(Int)
        case poll(Int, Int16)
        case watch(Int, UInt32)
        case change(Int, UInt32)
        case forget(Int)
        case wait(Int)
    }

    let calls: [Call]

    var description: String { calls.enumerated().map { "\($0): \($1)" }.joined(separator: "\n") }

    /// A program of 5 to 60 calls, whose sockets are of one family or of several.
    init(_ random: inout SeededRandom) {
        var made: [(number: Int, kind: Kind)] = []
        var calls: [Call] = []
        let kinds = random.happens(0.7) ? [random.element(Kind.allCases)] : Kind.allCases
        let length = 5 + random.below(56)
        func any() -> Int { made[random.below(made.count)].number }
        func target() -> Target { random.happens(0.9) ? .socket(any()) : .nobody }
        func size() -> Int { random.element([0, 1, 2, 100, 1500, 5000]) }
        // Without EPOLLET: the kernel sometimes reports an edge where nothing has changed.
        func mask() -> UInt32 { random.element([0, 0x1, 0x4, 0x5, 0x2001, 0x2005, 0x2000]) }
        func pieces() -> [Int] { (0..<random.below(4)).map { _ in size() } }
        func option() -> (CInt, CInt) {
            let options: [(CInt, CInt)] = [
                (SOL_SOCKET, SO_REUSEPORT), (SOL_SOCKET, SO_TYPE), (SOL_SOCKET, SO_KEEPALIVE), (SOL_SOCKET, 4711),
                (CInt(IPPROTO_TCP), TCP_NODELAY), (CInt(IPPROTO_TCP), 4711), (CInt(IPPROTO_IPV6), IPV6_UNICAST_HOPS),
                (CInt(IPPROTO_IP), IP_TOS), (4711, 1),
            ]
            return random.element(options)
        }
        while calls.count < length {
            if made.count < 2 || random.happens(0.08) {
                let kind = random.element(kinds)
                made.append((calls.count, kind))
                calls.append(.socket(kind))
                if random.happens(0.6) { calls.append(.bind(made.last!.number, nil)) }
                continue
            }
            switch random.below(46) {
            case 0: calls.append(.bind(any(), random.happens(0.5) ? .socket(any()) : nil))
            case 1, 2, 3: calls.append(.listen(any(), random.below(3)))
            case 4, 5, 6, 7, 8:
                calls.append(.connect(any(), target()))
            case 9, 10, 11, 12:
                let listener = made[random.below(made.count)]
                made.append((calls.count, listener.kind))
                calls.append(.accept(listener.number))
            case 13, 14, 15, 16, 17: calls.append(.send(any(), size()))
            case 18: calls.append(.sendTo(any(), target(), size()))
            case 19, 20, 21, 22: calls.append(.receive(any(), random.element([1, 50, 4096, 65_536])))
            case 23: calls.append(.receiveMessage(any(), random.element([1, 50, 4096])))
            case 24, 25: calls.append(.shutdown(any(), CInt(random.below(3))))
            case 26, 27: calls.append(.close(any()))
            case 28: calls.append(.error(any()))
            case 29: calls.append(random.happens(0.5) ? .isListening(any()) : .resetOnClose(any()))
            case 30: calls.append(random.happens(0.5) ? .names(any()) : .reuseAddress(any()))
            case 31: calls.append(.waiting(any()))
            case 32: calls.append(.poll(any(), random.element([0x1, 0x4, 0x5, 0x2001])))
            case 33, 34: calls.append(.watch(any(), mask()))
            case 35: calls.append(random.happens(0.7) ? .change(any(), mask()) : .forget(any()))
            case 40, 41:
                let sending = random.element(Sending.allCases)
                calls.append(.sendPieces(any(), sending, sending == .write ? [size()] : pieces()))
            case 42: calls.append(.read(any(), random.element([0, 1, 4096])))
            case 43: calls.append(.burst(any(), 1 + random.below(6)))
            case 44:
                let (level, name) = option()
                calls.append(.setOption(any(), level: level, name: name))
            case 45:
                let (level, name) = option()
                calls.append(.getOption(any(), level: level, name: name))
            case 36:
                if kinds.contains(.unix) {
                    // Two numbers.
                    made.append((calls.count, .unix))
                    calls.append(.pair)
                    made.append((calls.count, .unix))
                    calls.append(.wait(4))
                }
            default: calls.append(.wait(random.element([1, 2, 64])))
            }
        }
        self.calls = calls
    }

    init(calls: [Call]) { self.calls = calls }

    /// The program without one call, which then does nothing, so that the numbers of the others stay.
    func without(_ index: Int) -> SocketProgram {
        var shorter = calls
        shorter[index] = .wait(0)
        return SocketProgram(calls: shorter)
    }
}
