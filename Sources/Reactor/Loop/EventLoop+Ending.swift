// What happens on the loop's own thread when the loop ends.

extension EventLoop {
    /// Calls `body` when the loop ends, on the loop's thread, before what waits there is released.
    /// - Returns: an identifier for `forgetEnding`. Once the loop has ended, `body` is released without being called.
    package func whenEnding(_ body: @escaping () -> Void) -> Int { hasEnded ? 0 : ending.add(body) }

    /// Releases a body that was passed to `whenEnding`, if it has not been called.
    package func forgetEnding(_ id: Int) { _ = ending.take(id) }

    func runEndings() {
        // A body may forget others. None is added any more: `hasEnded` is true.
        for id in ending.ids { ending.take(id)?() }
    }

    func releaseLocals() {
        shared.life.advance(to: .releasingLocals)
        ending.beginReleasingLocals()
        // The `deinit` of a value may ask for another one, which is there as long as it has not been released.
        while ending.takeLastLocal() != nil {}
    }
}
