import Glibc

/// The field `Date`, which is formatted once a second.
final class DateField {
    private var second: time_t = -1
    private var line: [UInt8] = []

    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT`, with its CR LF.
    var bytes: [UInt8] {
        let now = time(nil)
        if now != second {
            second = now
            line = Self.format(now)
        }
        return line
    }

    private static func format(_ second: time_t) -> [UInt8] {
        var (second, fields) = (second, tm())
        gmtime_r(&second, &fields)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            // The names are English: the program sets no locale.
            let count = strftime(buffer.baseAddress!, buffer.count, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &fields)
            return buffer[..<count].map { UInt8(bitPattern: $0) }
        }
    }
}
