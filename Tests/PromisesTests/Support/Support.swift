import Glibc
import Promises
import Reactor
import Synchronization
import Testing

/// The error of these tests; the number tells one from another.
struct Flaw: Error, Equatable {
    let number: Int

    init(_ number: Int = 0) { self.number = number }
}

/// Runs `body` on a loop of its own in virtual time.
@discardableResult
func inLoop<Value>(_ body: (EventLoop) throws -> Value) rethrows -> Value {
    try EventLoop.withLoop(clock: VirtualClock(), body)
}

/// A count that debug builds, which take longer, scale down, and builds with a sanitizer again.
func scaled(_ count: Int) -> Int {
    let count = isSanitized ? count / 10 : count
    #if DEBUG
        return count / 5
    #else
        return count
    #endif
}

/// A promise that nothing settles but its cancellation.
func endless(_ file: StaticString = #fileID, _ line: UInt = #line) -> Promise<Int> {
    let (promise, resolver) = Promise<Int>.pending(file, line)
    // A circle, which the cancellation breaks.
    resolver.onCancel { withExtendedLifetime(resolver) {} }
    return promise
}

extension Catchable {
    /// The end of a chain that the test does not expect to fail.
    func orFail(_ location: SourceLocation = #_sourceLocation) {
        self.catch(policy: .allErrors) { Issue.record($0, sourceLocation: location) }
    }

    /// The end of a chain whose rejection is none of the test's business.
    func ignoringErrors() { self.catch(policy: .allErrors) { _ in } }

    /// The error, if it is a `Flaw`.
    var flaw: Flaw? { error as? Flaw }
}

/// A thread, which the test must join.
final class Strand: Sendable {
    private let handle: pthread_t

    /// - Parameter stackSize: in bytes; without it, the system's.
    init(stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var handle = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
        let code = pthread_create(
            &handle, &attributes,
            {
                Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(Box(body)).toOpaque())
        precondition(code == 0, "pthread_create failed with \(code)")
        self.handle = handle
    }

    func join() { pthread_join(handle, nil) }

    /// Instead of joining it.
    func detach() { pthread_detach(handle) }

    /// Runs `body` on a thread of its own and waits for it, and for the end of that thread's loop.
    static func run(_ body: @escaping @Sendable () -> Void) { Strand(body).join() }
}

/// Lets threads wait for one another.
final class Gate: @unchecked Sendable {
    // The semaphore is made for any thread, and its address never changes.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets one through.
    func open() { sem_post(semaphore) }

    func wait() {
        while sem_wait(semaphore) != 0 {}
    }
}

/// A value for several threads.
// @unchecked: the value is touched under the lock only.
final class Shared<Value: Sendable>: @unchecked Sendable {
    // A lock of pthread's and not a Mutex: ThreadSanitizer sees the former. Allocated, since its address must not change.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var content: Value

    init(_ value: Value) {
        content = value
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    var value: Value { change { $0 } }

    @discardableResult
    func change<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&content)
    }
}

/// Knows how many of its tokens are alive, how many have been, and which threads let them go.
final class Tally: Sendable {
    private struct Books: Sendable {
        var alive = 0
        var peak = 0
        var enders: [pthread_t] = []
    }
    private let books = Shared(Books())
    private let keepsEnders: Bool

    init(keepsEnders: Bool = false) { self.keepsEnders = keepsEnders }

    /// A reference that is counted while it lives.
    final class Token: Sendable {
        private let tally: Tally

        init(_ tally: Tally) {
            self.tally = tally
            tally.books.change {
                $0.alive += 1
                $0.peak = max($0.peak, $0.alive)
            }
        }

        deinit {
            tally.books.change {
                $0.alive -= 1
                if tally.keepsEnders { $0.enders.append(pthread_self()) }
            }
        }

        /// For a closure that only has to hold it.
        func use() {}
    }

    func token() -> Token { Token(self) }
    var alive: Int { books.change { $0.alive } }
    var peak: Int { books.change { $0.peak } }
    var enders: [pthread_t] { books.change { $0.enders } }
}

/// Whether a sanitizer watches, under which memory is not what it would be.
let isSanitized =
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), "__asan_init") != nil
    || dlsym(UnsafeMutableRawPointer(bitPattern: 0), "__tsan_init") != nil

/// The process's resident memory in bytes.
func residentBytes() -> Int {
    var text = [CChar](repeating: 0, count: 128)
    let fd = open("/proc/self/statm", O_RDONLY)
    defer { close(fd) }
    let count = read(fd, &text, 127)
    precondition(count > 0)
    let fields = String(decoding: text[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: " ")
    return Int(fields[1])! * Int(sysconf(Int32(_SC_PAGESIZE)))
}

// These two are functions because closures inside the arguments of a macro can share a symbol with other closures of
// the same function (Swift 6.3): the wrong one then runs, in silence. So no `#expect` here contains a closure.

/// Hangs on `thenable` and expects `value`.
func expect<Each: Thenable>(
    _ thenable: Each, gives value: Each.T, _ location: SourceLocation = #_sourceLocation
) where Each.T: Equatable {
    do {
        let seen = try thenable.wait()
        #expect(seen == value, sourceLocation: location)
    } catch { Issue.record(error, sourceLocation: location) }
}

/// Hangs on `thenable` and expects it to be rejected with `error`.
func expect<Failure: Error & Equatable>(
    _ thenable: some Thenable, failsWith error: Failure, _ location: SourceLocation = #_sourceLocation
) {
    #expect(throws: error, sourceLocation: location) { try thenable.wait() }
}
