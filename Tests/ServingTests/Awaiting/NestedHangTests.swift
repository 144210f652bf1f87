import CLinux

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Handlers that hang inside each other until the stack is nearly exhausted. In separate processes: without the limit
/// they end with a fault.
struct NestedHangTests {
    @Test(.ownThread) func handlersThatHangAreRefusedAtLast() async {
        await #expect(processExitsWith: .success) {
            for kind in ["timer", "jobs"] {
                try EventLoop.withLoop(clock: VirtualClock()) { loop in
                    let (never, resolver) = Promise<Void>.pending()
                    var codes: Set<CInt> = []
                    var depth = 0
                    func descend() {
                        if !codes.isEmpty { return }
                        depth += 1
                        do { try hang(never) } catch {
                            codes.insert((error as? SystemError)?.code ?? 0)
                            resolver.fulfill(())
                        }
                    }
                    if kind == "jobs" { for _ in 0..<scaled(100_000) { loop.enqueue { descend() } } }
                    let timer = kind == "timer" ? loop.schedule(every: .milliseconds(1)) { descend() } : nil
                    try hang(never)
                    timer?.cancel()
                    precondition(codes == [ELOOP] && depth > 50, "\(kind): \(codes) after \(depth)")
                    // Less deeply nested, it may turn again.
                    hang(after(.seconds(1)))
                }
            }
        }
    }

    /// It has no error to throw, and peers decide how many handlers hang.
    // A sanitizer may have its own stack, which does not count as another one.
    @Test(.ownThread, .disabled(if: isSanitized)) func hangsOnGuaranteesGoOnOnAnotherStack() async {
        await #expect(processExitsWith: .success) {
            let count = scaled(50_000)
            for size in [512 << 10, 8 << 20] {
                let ended = TestThread.run(stackSize: size) {
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
                precondition(ended == count, "\(size): \(ended)")
            }
        }
    }

    @Test(.ownThread) func runAndTurnAreRefusedTooAndWithLittleStack() async {
        await #expect(processExitsWith: .success) {
            let codes = TestThread.run(stackSize: 512 << 10) {
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
            let (isRefused, hasRun) = TestThread.run(stackSize: 512 << 10) {
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
