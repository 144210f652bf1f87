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

/// Remembers which cores are pending during a search, so that each chain of links is followed once.
///
/// These cores have records, and their links own the cores that they lead to. Under the lock of `TraceRegistry` none of
/// them is deallocated, so no address stands for two cores.
struct Roots {
    private var known: [UnsafeMutableRawPointer: Bool] = [:]
    /// The number of cores visited, for tests.
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
            // Most cores have no links, and are tested once.
            if !path.isEmpty { known[address] = isPending }
            break
        }
        for address in path { known[address] = isPending }
        return isPending
    }
}
