import Synchronization

/// The amount of work that other threads do for a loop: how many pieces are busy, and how many wait for that loop
/// itself.
///
/// Both are in one word, so that a reader gets a consistent pair. Between two loads the last busy piece could end, or a
/// waiting one resume, and the pair would show that all of them wait.
struct ExternalWorkCounts: ~Copyable {
    // The lower half counts the busy pieces and is never negative. (There is an object per piece, so their number
    // fits.) The upper half counts the waiting pieces. It is negative while the end of a wait has been counted and its
    // beginning has not.
    private let word = Atomic<Int>(0)

    private static var oneBusy: Int { 1 }
    private static var oneWaiting: Int { 1 << 32 }

    private static func busy(_ word: Int) -> Int { word & 0xffff_ffff }

    /// Whether there is any external work. Also true while the thread that ended the last piece has not finished
    /// counting one of its waits.
    var isUnderWay: Bool { word.load(ordering: .acquiring) != 0 }

    /// Whether any piece is not waiting for the loop.
    var isBusy: Bool { Self.busy(word.load(ordering: .acquiring)) > 0 }

    var count: Int {
        let word = word.load(ordering: .acquiring)
        return Self.busy(word) + word >> 32
    }

    func begin() { word.add(Self.oneBusy, ordering: .relaxed) }

    /// - Returns: whether no piece is busy any more.
    func end() -> Bool {
        let (old, new) = word.subtract(Self.oneBusy, ordering: .acquiringAndReleasing)
        assert(Self.busy(old) > 0, "more external work has ended than has begun")
        return Self.busy(new) == 0
    }

    /// A busy piece begins to wait.
    /// - Returns: whether no piece is busy any more.
    func beginWaiting() -> Bool {
        Self.busy(word.add(Self.oneWaiting - Self.oneBusy, ordering: .acquiringAndReleasing).newValue) == 0
    }

    func endWaiting() { word.subtract(Self.oneWaiting - Self.oneBusy, ordering: .acquiringAndReleasing) }
}
