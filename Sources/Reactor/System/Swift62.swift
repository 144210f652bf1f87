// Swift 6.2's library lacks two functions of 6.3's. This file has what takes their place there, and with Recover.swift all
// `#if compiler` of the sources. When docs/reference/stability.md no longer names 6.2, the branches of 6.3 move to their
// callers, and it goes.

extension EventLoop {
    /// True if `actor` lives on this loop.
    func isExecutor(of actor: any Actor) -> Bool {
        #if compiler(>=6.3)
        guard let executor = actor.unownedExecutor.asSerialExecutor() as? LoopActorExecutor else { return false }
        return executor.isExecutor(of: self)
        #else
        // An executor is two words, by Swift's ABI; the first one is its object. Such an object exists once for a loop
        // until the loop has ended, and no actor's jobs run on one that has.
        let (object, _) = unsafeBitCast(actor.unownedExecutor, to: (UInt, UInt).self)
        return ownRemote.map { UInt(bitPattern: ObjectIdentifier($0.actors)) == object } ?? false
        #endif
    }
}

extension [UInt8] {
    /// Appends at most `count` bytes, which `body` writes in place.
    /// - Parameter body: returns the number of bytes written.
    @inlinable @inline(__always)
    package mutating func append(atMost count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        #if compiler(>=6.3)
        append(addingCapacity: count) { output in
            output.withUnsafeMutableBufferPointer { buffer, initialized in
                initialized = body(UnsafeMutableRawBufferPointer(buffer))
            }
        }
        #else
        let start = self.count
        // Zeros first: an array of 6.2 has no memory to write to that is not initialized. Those of an array are set by one
        // call; in a debug build `repeatElement` takes 50 ms for those of a read.
        append(contentsOf: [UInt8](repeating: 0, count: count))
        let written = withUnsafeMutableBytes { body(.init(rebasing: $0[start...])) }
        removeLast(count - written)
        #endif
    }
}
