/// Goes through the lines of a head as they arrive, each line once, however the packets split it.
struct HeadLines {
    /// Where the next line begins, and where the search for its end continues.
    private(set) var start = 0
    private var searched = 0
    /// Bytes of the empty lines before the head. They are no part of it, and begin no time limit.
    private(set) var skipped = 0

    /// The next line, without its end; `nil` if that has not arrived.
    @inline(__always)
    mutating func next(in bytes: Bytes) throws(HTTPError) -> Bytes? {
        guard let end = try bytes.endOfLine(from: start, searchingFrom: searched) else {
            searched = bytes.count
            return nil
        }
        defer {
            start = end + 2
            searched = start
        }
        return bytes.slice(start..<end)
    }

    /// Skips the lines so far: the bytes behind them come again, counted from 0.
    /// - Returns: how many bytes to skip.
    mutating func skip() -> Int {
        let count = start
        self = HeadLines(skipped: skipped + count)
        return count
    }

    init() {}

    private init(skipped: Int) { self.skipped = skipped }
}
