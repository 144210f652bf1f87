/// Settles with its source's outcome. The operation retains an object, a timer or a watch on the peer, that may settle
/// the core earlier. Releasing the object cancels it.
@usableFromInline
package struct SettleAsSource<T>: Operation {
    @usableFromInline package typealias Output = T
    @usableFromInline let object: AnyObject

    @inlinable package init(retaining object: AnyObject) { self.object = object }

    @inlinable
    package func run(_ source: Source<T>, _ core: PromiseCore) { core.finish(as: source) }
}
