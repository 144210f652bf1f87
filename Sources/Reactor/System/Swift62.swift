// Replacements for two functions of Swift 6.3's library that 6.2 lacks. With Recover.swift, all `#if compiler` of the
// sources. When docs/reference/stability.md no longer names 6.2, the branches of 6.3 move to their callers, and this
// file goes.

extension EventLoop {
    func isExecutor(of actor: any Actor) -> Bool {
        #if compiler(>=6.3)
        guard let executor = actor.unownedExecutor.asSerialExecutor() as? LoopActorExecutor else { return false }
        return executor.isExecutor(of: self)
        #else
        // By Swift's ABI an executor is two words, the first its object. A loop has one such object until its end, and
        // an ended loop runs no actor's jobs.
        let (object, _) = unsafeBitCast(actor.unownedExecutor, to: (UInt, UInt).self)
        return ownRemote.map { UInt(bitPattern: ObjectIdentifier($0.actors)) == object } ?? false
        #endif
    }
}

extension [UInt8] {
    /// Appends at most `count` bytes, written in place by `body`.
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
        // Zeros first, since an array of 6.2 lends no uninitialized memory. An array sets them by one call; in debug
        // builds `repeatElement` takes 50 ms for a read.
        append(contentsOf: [UInt8](repeating: 0, count: count))
        let written = withUnsafeMutableBytes { body(.init(rebasing: $0[start...])) }
        removeLast(count - written)
        #endif
    }
}
