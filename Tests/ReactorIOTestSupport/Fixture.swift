import Glibc
import PromisesTestSupport

/// What the traits `.network`, `.pair`, `.filteredPair`, `.listener` and `.group` make for a test.
// @unchecked Sendable: `elsewhere` passes it on to other threads, which use the peer and the listener's address.
final class Fixture: @unchecked Sendable {
    let network: Network
    fileprivate(set) var pair: (connection: Connection, peer: Peer)?
    fileprivate var listener: Listener?
    fileprivate var group: LoopGroup?
    private var others: [String: AnyObject] = [:]

    init(_ loop: EventLoop, _ ledger: Ledger, _ clock: VirtualClock?) {
        network = Network(loop: loop, ledger: ledger, virtualClock: clock)
    }

    /// An object that is made at its first use, and kept as long as the rest.
    func kept<Object: AnyObject>(_ make: () -> Object) -> Object {
        if let object = others["\(Object.self)"] { return object as! Object }
        let object = make()
        others["\(Object.self)"] = object
        return object
    }

    private static let key = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    static var current: Fixture? {
        pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs `body` with this one as the current one of the thread.
    func use<Value>(_ body: (Fixture) throws -> Value) rethrows -> Value {
        let before = pthread_getspecific(Self.key)
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.key, before) }
        return try withExtendedLifetime(self) { try body(self) }
    }
}

/// The network of the test, on its own thread.
var net: Network { Fixture.current!.network }
/// The connection of a test with the trait `.pair` or `.filteredPair`, which is aborted in the end.
var connection: Connection { Fixture.current!.pair!.connection }
/// Its other end, also inside of `elsewhere`.
var peer: Peer { Fixture.current!.pair!.peer }
/// The listener of a test with the trait `.listener` or `.group`.
var listener: Listener { Fixture.current!.listener! }
/// The loops of a test with the trait `.group`.
var loops: LoopGroup { Fixture.current!.group! }

/// The time of a test's loop.
enum TestTime { case real, virtual }

extension Trait where Self == Around {
    /// Each test has a loop of its own, and `net`; see `withNetwork`.
    static var network: Self { network() }
    static func network(_ time: TestTime = .real, turns: Int = 400) -> Self { made(time, turns) { _ in } }

    /// The same with `connection` and `peer`.
    static var pair: Self { pair() }
    static func pair(_ time: TestTime = .real, turns: Int = 400) -> Self {
        made(time, turns) { $0.pair = try $0.network.pair() }
    }

    /// The same with a filter whose handshake has ended.
    static var filteredPair: Self { filteredPair() }
    static func filteredPair(_ time: TestTime = .real, turns: Int = 400) -> Self {
        made(time, turns) { $0.pair = try $0.network.filteredPair() }
    }

    /// The same with `listener`.
    static var listener: Self { listener() }
    static func listener(_ time: TestTime = .real, turns: Int = 400) -> Self {
        made(time, turns) { $0.listener = try $0.network.listen() }
    }

    /// Each test has a loop of its own, in real time, a group of others, `loops`, which end after it, and a `listener`.
    static func group(_ loops: Int) -> Self {
        .checking { body in
            let group = try! LoopGroup(loops: loops, name: "loop")
            EventLoop.withLoop { loop in
                Fixture(loop, Ledger(), nil).use { fixture in
                    fixture.group = group
                    fixture.listener = try! Listener.bind("127.0.0.1:0")
                    body()
                }
            }
            group.stop()
            group.join()
            return []
        }
    }

    private static func made(
        _ time: TestTime, _ turns: Int, _ make: @escaping @Sendable (Fixture) throws -> Void
    ) -> Self {
        .checking { body in
            let ledger = Ledger()
            let clock = time == .virtual ? VirtualClock() : nil
            EventLoop.withLoop(clock: clock, syscalls: ledger.syscalls()) { loop in
                Fixture(loop, ledger, clock).use { fixture in
                    do { try make(fixture) } catch { fatalError("a test cannot begin: \(error)") }
                    body()
                    fixture.pair?.connection.abort()
                }
                ledger.check(loop, turns: turns)
            }
            return ledger.complaints
        }
    }
}
