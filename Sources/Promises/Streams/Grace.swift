/// The rule of all time limits of a peer: what the kernel has in time is not late. When a limit has been reached, its
/// clock fires once more, after what has become ready with it has been handled; only then the limit applies. Once for
/// each wait, so that further bytes do not prolong it.
///
/// `ConnectionClose` needs none: its clock reads and sends by itself before it looks.
struct Grace {
    private var isUsed = false

    /// Called when a limit has been reached.
    /// - Parameter isReady: true when there may be something to handle first; evaluated at most once for each wait.
    /// - Returns: false if the limit applies.
    mutating func isGranted(if isReady: @autoclosure () -> Bool = true) -> Bool {
        if isUsed || !isReady() { return false }
        isUsed = true
        return true
    }
}
