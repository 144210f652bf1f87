import Glibc

/// The error of these tests; the number identifies it.
struct Flaw: Error, Equatable {
    let number: Int

    init(_ number: Int = 0) { self.number = number }
}

/// The time that a test waits for an expected event. Only a failing test waits that long.
package let patience: Duration = .seconds(60)

/// Runs `body` on a separate loop in virtual time.
@discardableResult
func inLoop<Value>(_ body: (EventLoop) throws -> Value) rethrows -> Value {
    try EventLoop.withLoop(clock: VirtualClock(), body)
}

extension Trait where Self == Around {
    /// Each test runs on a separate loop in virtual time, `EventLoop.current`, which ends with it.
    static var inLoop: Self { Around { body in PromisesTestSupport.inLoop { _ in body() } } }
    /// The same in real time.
    static var inRealTime: Self { Around { body in EventLoop.withLoop { _ in body() } } }
}

/// A promise that settles only when cancelled.
func endless(_ file: StaticString = #fileID, _ line: UInt = #line) -> Promise<Int> {
    let (promise, resolver) = Promise<Int>.pending(file, line)
    // A cycle, which the cancellation breaks.
    resolver.onCancel { withExtendedLifetime(resolver) {} }
    return promise
}

extension Catchable {
    /// The end of a chain that the test does not expect to fail.
    func orFail(_ location: SourceLocation = #_sourceLocation) {
        self.catch(policy: .allErrors) { Issue.record($0, sourceLocation: location) }
    }

    /// The end of a chain whose rejection does not matter to the test.
    func ignoringErrors() { self.catch(policy: .allErrors) { _ in } }

    /// The error, if it is a `Flaw`.
    var flaw: Flaw? { error as? Flaw }
}

/// For asynchronous functions, which may not call pthread_self(3).
func threadOfCaller() -> pthread_t { pthread_self() }

/// True if this thread's loop is `home`.
func isCurrent(_ home: LoopRemote) -> Bool { EventLoop.current.remote == home }

/// True if the witness has been released: a function, since `#expect` would print the object itself.
func isGone(_ witness: AnyObject?) -> Bool { witness == nil }

/// A process's resident memory in bytes.
func residentBytes(of process: String = "self") -> Int {
    var text = [CChar](repeating: 0, count: 128)
    let fd = open("/proc/\(process)/statm", O_RDONLY | O_CLOEXEC)
    defer { close(fd) }
    let count = read(fd, &text, 127)
    precondition(count > 0)
    let fields = String(decoding: text[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: " ")
    return Int(fields[1])! * Int(sysconf(Int32(_SC_PAGESIZE)))
}

// These two are functions because closures inside the arguments of a macro can share a symbol with other closures of
// the same function (Swift 6.3): the wrong one then runs silently. So no `#expect` here contains a closure.

/// Hangs on `thenable` and expects `value`.
func expect<Each: Thenable>(
    _ thenable: Each, gives value: Each.T, _ location: SourceLocation = #_sourceLocation
) where Each.T: Equatable {
    do {
        let seen = try hang(thenable.asPromise())
        #expect(seen == value, sourceLocation: location)
    } catch { Issue.record(error, sourceLocation: location) }
}

/// Hangs on `thenable` and expects it to be rejected with `error`.
func expect<Failure: Error & Equatable>(
    _ thenable: some Thenable, failsWith error: Failure, _ location: SourceLocation = #_sourceLocation
) {
    #expect(throws: error, sourceLocation: location) { try hang(thenable.asPromise()) }
}

/// All orders of the numbers below `count`.
func orders(of count: Int) -> [[Int]] {
    guard count > 0 else { return [[]] }
    return orders(of: count - 1).flatMap { order in
        (0...order.count).map { place in
            var longer = order
            longer.insert(count - 1, at: place)
            return longer
        }
    }
}

extension Result where Failure == any Error {
    var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }
    var flaw: Flaw? { error as? Flaw }

    var isCancelled: Bool {
        guard case .failure(let error) = self else { return false }
        return error.isCancelled
    }
}
