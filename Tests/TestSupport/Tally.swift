import Glibc

/// Counts its live tokens and all that were created, and records the threads that released them.
package final class Tally: Sendable {
    private struct Books: Sendable {
        var alive = 0
        var peak = 0
        var enders: [pthread_t] = []
    }
    private let books = Shared(Books())
    private let keepsEnders: Bool

    package init(keepsEnders: Bool = false) { self.keepsEnders = keepsEnders }

    /// A reference that is counted while it lives.
    package final class Token: Sendable {
        private let tally: Tally

        fileprivate init(_ tally: Tally) {
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
        package func use() {}
    }

    package func token() -> Token { Token(self) }
    package var alive: Int { books.change { $0.alive } }
    package var peak: Int { books.change { $0.peak } }
    package var enders: [pthread_t] { books.change { $0.enders } }

    // MARK: Closures

    /// `body` as a closure whose lifetime is counted.
    package func bound(_ body: @escaping () -> Void = {}) -> () -> Void {
        let token = token()
        return { withExtendedLifetime(token, body) }
    }

    /// `body` as a closure whose lifetime is counted, for other threads.
    package func boundForThreads(_ body: @escaping @Sendable () -> Void = {}) -> @Sendable () -> Void {
        let token = token()
        return { withExtendedLifetime(token, body) }
    }
}
