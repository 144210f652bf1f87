/// Settles as its source. The operation retains an object that may settle the core earlier, a timer or a watch of
/// the peer, and whose release cancels that.
@usableFromInline
package struct SettleAsSource<T>: Operation {
    @usableFromInline package typealias Output = T
    @usableFromInline let object: AnyObject

    @inlinable package init(retaining object: AnyObject) { self.object = object }

    @inlinable
    package func run(_ source: Source<T>, _ core: PromiseCore) { core.finish(as: source) }
}
