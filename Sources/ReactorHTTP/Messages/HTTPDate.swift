import ReactorLibc

// The names in strftime and strptime depend on the locale.
private let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/// Formats a date as `Sun, 06 Nov 1994 08:49:37 GMT`: RFC 9110, section 5.6.7.
func httpDate(_ second: time_t) -> String {
    var (second, fields) = (second, tm())
    gmtime_r(&second, &fields)
    func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(two(fields.tm_mday)) \(months[Int(fields.tm_mon)]) \(1900 + Int(fields.tm_year))"
    let time = [fields.tm_hour, fields.tm_min, fields.tm_sec].map(two).joined(separator: ":")
    return "\(days[Int(fields.tm_wday)]), \(date) \(time) GMT"
}

/// Parses a date in the three forms of RFC 9110, section 5.6.7: the one above, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun
/// Nov  6 08:49:37 1994`. `nil` for other texts.
func second(ofHTTPDate text: String) -> time_t? {
    let parts = text.utf8.split { " ,-:".utf8.contains($0) }.map { String($0) ?? "" }
    let isOfC = parts.count == 7
    guard isOfC || parts.count == 8 && parts[7] == "GMT" else { return nil }
    func number(_ index: Int, _ range: ClosedRange<CInt>) -> CInt? {
        guard parts[index].utf8.allSatisfy(isDigit), let number = CInt(parts[index]) else { return nil }
        return range.contains(number) ? number : nil
    }
    let first = isOfC ? 3 : 4
    guard let month = months.firstIndex(of: parts[isOfC ? 1 : 2]), let day = number(isOfC ? 2 : 1, 1...31),
        let year = number(isOfC ? 6 : 3, 0...9999), let hour = number(first, 0...23),
        let minute = number(first + 1, 0...59), let second = number(first + 2, 0...60)
    else { return nil }
    var fields = tm()
    // Only the second form has a two-digit year, of this century or the last.
    fields.tm_year = year > 99 ? year - 1900 : year < 70 ? year + 100 : year
    (fields.tm_mon, fields.tm_mday) = (CInt(month), day)
    (fields.tm_hour, fields.tm_min, fields.tm_sec) = (hour, minute, second)
    return timegm(&fields)
}
