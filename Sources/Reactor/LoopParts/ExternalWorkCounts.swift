import Synchronization

/// Busy pieces of external work, and pieces that wait for the loop itself.
///
/// One word gives a consistent pair. Between two loads, the last busy piece could end or a waiting piece resume, and
/// all would seem to wait.
struct ExternalWorkCounts: ~Copyable {
    // The lower half counts busy pieces and is never negative; the number fits, since each piece has an object. The
    // upper half counts waiting pieces, and is negative if the end of a wait is counted before its beginning.
    private let word = Atomic<Int>(0)

    private static var oneBusy: Int { 1 }
    private static var oneWaiting: Int { 1 << 32 }

    private static func busy(_ word: Int) -> Int { word & 0xffff_ffff }

    /// True when there is external work, or the last piece's wait has yet to be counted.
    var isUnderWay: Bool { word.load(ordering: .acquiring) != 0 }

    var isBusy: Bool { Self.busy(word.load(ordering: .acquiring)) > 0 }

    var count: Int {
        let word = word.load(ordering: .acquiring)
        return Self.busy(word) + word >> 32
    }

    func begin() { word.add(Self.oneBusy, ordering: .relaxed) }

    /// - Returns: true if no piece is busy any more.
    func end() -> Bool {
        let (old, new) = word.subtract(Self.oneBusy, ordering: .acquiringAndReleasing)
        assert(Self.busy(old) > 0, "more external work has ended than has begun")
        return Self.busy(new) == 0
    }

    func beginWaiting() -> Bool {
        Self.busy(word.add(Self.oneWaiting - Self.oneBusy, ordering: .acquiringAndReleasing).newValue) == 0
    }

    func endWaiting() { word.subtract(Self.oneWaiting - Self.oneBusy, ordering: .acquiringAndReleasing) }
}
