import ReactorLibc

/// The validators of a file (RFC 9110, section 8.8), from the answer of fstat(2).
///
/// A modification time alone proves nothing: `cp -p`, archives and reproducible builds set it. The kernel alone sets the
/// time of the last status change, whenever the content, the name or the modification time changes.
struct FileVersion: Sendable {
    /// The field `ETag`.
    let tag: String
    /// False if two contents may have the same tag.
    let isStrong: Bool
    /// The second of the last change, for `Last-Modified`; `nil` if it proves nothing.
    let second: time_t?

    /// A clock of a file system may stand still for so many seconds: FAT has even ones.
    private static var granularity: Int { 2 }

    init(_ status: stat, now: timespec) {
        let (modified, changed) = (status.st_mtim, status.st_ctim)
        let settled = now.tv_sec - Self.granularity
        // Builders of images give each file 0 or 1: then the date is that of no change.
        let isDated = modified.tv_sec > 1
        let newest = max(modified.tv_sec, changed.tv_sec)
        second = isDated && newest <= settled ? newest : nil
        // A change at this moment may leave the same stamps, and in an image of such a file all are alike.
        let isKnown = changed.tv_sec > 1 && changed.tv_sec <= settled
        // Whole seconds: a builder's clock, or one too coarse for a strong tag.
        isStrong = isKnown && isDated && changed.tv_nsec != 0
        var stamps = Hash()
        stamps.add(Int(truncatingIfNeeded: status.st_ino))
        stamps.add(modified)
        stamps.add(changed)
        // Equal to no other tag, so each request gets the file.
        if !isKnown { stamps.add(now) }
        let text = "\"\(String(status.st_size, radix: 16))-\(String(stamps.value, radix: 16))\""
        tag = isStrong ? text : "W/" + text
    }

    /// Shortens the stamps, and does not tell clients the number of the inode. It differs if one of them does: each
    /// step has an inverse.
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
