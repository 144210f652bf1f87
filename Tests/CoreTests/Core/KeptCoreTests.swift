#if REUSE_CHECKS
    import Reactor
    import TestSupport
    import Testing

    @testable import Promises
    @testable import PromisesTestSupport

    /// What a party does to a core that a loop keeps is noticed.
    @Suite struct KeptCoreTests {
        /// The place of a core that this thread's loop keeps.
        private static func keptCore() -> CoreRef {
            let place = CoreRef.retaining(.fulfilled(1))
            SpareCores.releaseOrKeep(place)
            return place
        }

        @Test func aWriteEndsTheProcess() async {
            await #expect(processExitsWith: .failure) {
                EventLoop.withLoop { _ in
                    Self.keptCore().payload.store(2)
                    for number in 0..<200 { SpareCores.releaseOrKeep(.retaining(PromiseCore.fulfilled(number))) }
                }
            }
        }

        @Test(.enabled(if: isSanitized)) func aReadEndsTheProcess() async {
            await #expect(processExitsWith: .failure) {
                EventLoop.withLoop { _ in print(Self.keptCore().borrow { $0.state.load() }) }
            }
        }

        @Test func otherwiseItEndsWell() async {
            await #expect(processExitsWith: .success) {
                EventLoop.withLoop { _ in
                    for _ in 0..<200 { _ = Self.keptCore() }
                }
            }
        }
    }
#endif
