import CLinux

@testable import PromisesTestSupport

/// Handlers that hang inside each other until the stack is nearly exhausted. In separate processes: without the limit
/// they end with a fault.
struct NestedHangTests {
    /// The code of the error that refused the innermost call.
    private static func refusal(of error: any Error) -> CInt? { (error as? SystemError)?.code }

    @Test(.ownThread) func aRepeatingTimerWhoseCallbackHangsIsRefusedAtLast() async {
        await #expect(processExitsWith: .success) {
            try EventLoop.withLoop(clock: VirtualClock()) { loop in
                let (never, resolver) = Promise<Void>.pending()
                var code: CInt?
                var depth = 0
                let timer = loop.schedule(every: .milliseconds(1)) {
                    if code != nil { return }
                    depth += 1
                    do { try hang(never) } catch {
                        code = NestedHangTests.refusal(of: error)
                        resolver.fulfill(())
                    }
                }
                try hang(never)
                timer.cancel()
                precondition(code == ELOOP && depth > 50, "\(code ?? 0) after \(depth)")
                // Less deeply nested, it may turn again.
                hang(after(.seconds(1)))
            }
        }
    }

    @Test(.ownThread) func hangsOfReadyJobsAreRefusedAtLast() async {
        await #expect(processExitsWith: .success) {
            try EventLoop.withLoop(clock: VirtualClock()) { loop in
                let (never, resolver) = Promise<Void>.pending()
                var codes: Set<CInt> = []
                for _ in 0..<scaled(100_000) {
                    loop.enqueue {
                        if !codes.isEmpty { return }
                        do { try hang(never) } catch {
                            codes.insert(NestedHangTests.refusal(of: error) ?? 0)
                            resolver.fulfill(())
                        }
                    }
                }
                try hang(never)
                precondition(codes == [ELOOP], "\(codes)")
            }
        }
    }

    /// It has no error to throw, and peers decide how many handlers hang.
    // A sanitizer may have its own stack, which does not count as another one.
    @Test(.ownThread, .disabled(if: isSanitized), arguments: [512 << 10, 8 << 20])
    func hangsOnGuaranteesGoOnOnAnotherStack(size: Int) async {
        await #expect(processExitsWith: .success) { [size] in
            let count = scaled(50_000)
            let ended = elsewhereWithStack(of: size) {
                EventLoop.withLoop(clock: VirtualClock()) { loop in
                    let (guarantee, fulfill) = Guarantee<Int>.pending()
                    var (begun, ended) = (0, 0)
                    for _ in 0..<count {
                        loop.schedule(after: .milliseconds(1)) {
                            begun += 1
                            if begun == count { fulfill(1) }
                            let one = hang(guarantee)
                            ended += one
                        }
                    }
                    hang(guarantee)
                    return ended
                }
            }
            precondition(ended == count, "\(ended)")
        }
    }

    @Test(.ownThread) func runAndTurnAreRefusedTooAndWithLittleStack() async {
        await #expect(processExitsWith: .success) {
            let codes = elsewhereWithStack(of: 512 << 10) {
                EventLoop.withLoop(clock: VirtualClock()) { loop in
                    var codes: [CInt] = []
                    func descend(_ depth: Int) {
                        if !codes.isEmpty { return }
                        loop.schedule(after: .milliseconds(1)) { descend(depth + 1) }
                        do throws(SystemError) {
                            if depth.isMultiple(of: 2) { try loop.run() } else { try loop.turn() }
                        } catch { codes.append(error.code) }
                    }
                    descend(0)
                    return codes
                }
            }
            precondition(codes == [ELOOP], "\(codes)")
        }
    }

    @Test(.ownThread) func anAsyncFunctionThatHasBegunNearTheLimitRunsToItsEnd() async {
        await #expect(processExitsWith: .success) {
            let (isRefused, hasRun) = elsewhereWithStack(of: 512 << 10) {
                EventLoop.withLoop { loop in
                    var (isRefused, hasRun) = (false, false)
                    func attempt() {
                        if hasRun { return }
                        do {
                            try loop.run { await Task.yield() }
                            hasRun = true
                        } catch { isRefused = true }
                    }
                    // Descends to the limit in steps smaller than the frame of a turn, and then ascends until `run`
                    // begins.
                    func descend() {
                        if clinux_stack_is_low() { return }
                        descend()
                        attempt()
                    }
                    loop.enqueue(descend)
                    try! loop.turn(.poll)
                    return (isRefused, hasRun)
                }
            }
            precondition(isRefused && hasRun, "refused: \(isRefused), run: \(hasRun)")
        }
    }
}

/// The result of `body` on a thread with a stack of that size, in bytes.
private func elsewhereWithStack<Value: Sendable>(of size: Int, _ body: @escaping @Sendable () -> Value) -> Value {
    let result = Shared<Value?>(nil)
    TestThread(stackSize: size) { result.change { $0 = body() } }.join()
    return result.value!
}
