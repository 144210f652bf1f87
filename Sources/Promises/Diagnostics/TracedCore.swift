/// A record's view of a core: an address without a reference, and a function that inspects the core. This folder does
/// not depend on the core, so the core can depend on this folder.
struct TracedCore {
    let address: UnsafeMutableRawPointer
    /// Returns the progress of the core at an address. The core is alive, but not retained, as it may be in its
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
/// Under the lock of `TraceRegistry` none of these cores, nor of those that their links own, is deallocated, so no
/// address stands for two cores.
struct Roots {
    private var known: [UnsafeMutableRawPointer: Bool] = [:]
    /// The number of visited cores, for tests.
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
