/// A record's view of a core: an unretained address, and a function that inspects the core. Keeps this folder
/// independent of the core, so the core can depend on this folder.
struct TracedCore {
    let address: UnsafeMutableRawPointer
    /// Returns the progress of the core at an address. The core is alive, but not retained, since it may be in its
    /// `deinit`.
    let progress: (UnsafeMutableRawPointer) -> TracedProgress

    enum TracedProgress {
        case pending
        case settled
        /// Linked to the core at this address.
        case linked(to: UnsafeMutableRawPointer)
    }
}

/// Follows each chain of links once during a search.
///
/// While the lock of `TraceRegistry` is held, none of these cores and none that their links own is deallocated. So no
/// address stands for two cores.
struct Roots {
    private var known: [UnsafeMutableRawPointer: Bool] = [:]
    /// For tests.
    private(set) var visited = 0

    mutating func isPending(_ core: TracedCore) -> Bool {
        var path: [UnsafeMutableRawPointer] = []
        var address = core.address
        var isPending = true
        while true {
            if !known.isEmpty, let answer = known[address] {
                isPending = answer
                break
            }
            visited += 1
            let progress = core.progress(address)
            if case .linked(let next) = progress {
                path.append(address)
                address = next
                continue
            }
            if case .settled = progress { isPending = false }
            if !path.isEmpty { known[address] = isPending }
            break
        }
        for address in path { known[address] = isPending }
        return isPending
    }
}
