import ReactorLibc

/// A file's validators (RFC 9110, section 8.8), from fstat(2).
///
/// A modification time proves nothing, because `cp -p`, archives and reproducible builds set it. Only the kernel sets
/// the time of the last status change, at each change of content, name or modification time.
struct FileVersion: Sendable {
    let tag: String
    /// False if two contents may share the tag.
    let isStrong: Bool
    /// The last change's second, for `Last-Modified`; `nil` if the times prove nothing.
    let second: time_t?

    /// The coarsest resolution of a file system's times in seconds: FAT has even seconds.
    private static var granularity: Int { 2 }

    init(_ status: stat, now: timespec) {
        let (modified, changed) = (status.st_mtim, status.st_ctim)
        let settled = now.tv_sec - Self.granularity
        // Image builders set all times to 0 or 1, which dates no change.
        let isDated = modified.tv_sec > 1
        let newest = max(modified.tv_sec, changed.tv_sec)
        second = isDated && newest <= settled ? newest : nil
        // Another change at this moment may leave the same times. In an image, all files share them.
        let isKnown = changed.tv_sec > 1 && changed.tv_sec <= settled
        // A time in whole seconds was set by a builder, or is too coarse for a strong tag.
        isStrong = isKnown && isDated && changed.tv_nsec != 0
        var stamps = Hash()
        stamps.add(Int(truncatingIfNeeded: status.st_ino))
        stamps.add(modified)
        stamps.add(changed)
        // The current time makes the tag unique, so no cached copy matches.
        if !isKnown { stamps.add(now) }
        let text = "\"\(String(status.st_size, radix: 16))-\(String(stamps.value, radix: 16))\""
        tag = isStrong ? text : "W/" + text
    }

    /// Condenses the stamps, and hides the inode number. Each step is invertible, so another stamp gives another hash.
    private struct Hash {
        private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func add(_ part: Int) {
            value = (value ^ UInt64(bitPattern: Int64(part))) &* 0x9E37_79B9_7F4A_7C15
            value ^= value >> 32
        }

        mutating func add(_ time: timespec) {
            add(time.tv_sec)
            add(time.tv_nsec)
        }
    }
}
