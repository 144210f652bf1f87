// Replacements for two functions that Swift 6.2's library lacks. This file and Recover.swift contain all `#if compiler`
// in the sources. When docs/reference/stability.md no longer names 6.2, the 6.3 branches move to their callers, and
// this file is deleted.

extension EventLoop {
    func isExecutor(of actor: any Actor) -> Bool {
        #if compiler(>=6.3)
        guard let executor = actor.unownedExecutor.asSerialExecutor() as? LoopActorExecutor else { return false }
        return executor.isExecutor(of: self)
        #else
        // By Swift's ABI an executor is two words, and the first is its object. A loop has one such object until it
        // ends, and an ended loop runs no actor's jobs.
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
        // Zeros first, since a 6.2 array gives no access to uninitialized memory. An array sets them in one call; in
        // debug builds `repeatElement` takes 50 ms per read.
        append(contentsOf: [UInt8](repeating: 0, count: count))
        let written = withUnsafeMutableBytes { body(.init(rebasing: $0[start...])) }
        removeLast(count - written)
        #endif
    }
}
