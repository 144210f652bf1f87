import Reactor

/// The three words of a core that hold its operation, its value or its error. `PromiseCore` lists the possible
/// contents.
///
/// Accessed by address and never by name, so that the optimiser sees stored closures escape. A typed pointer from
/// `withUnsafeMutablePointer` hid that, and `var done = false; p.done { done = true }; while !done { … }` became an
/// endless loop in client code.
// Sound while the core is alive: every use is a single load or store in a function that holds the core.
@usableFromInline
package struct CorePayload {
    @usableFromInline let address: UnsafeMutableRawPointer

    /// Refers to the payload of a core that the caller holds.
    @inlinable @inline(__always)
    init(ofCoreAt core: UnsafeMutableRawPointer) { address = core + Self.offset }

    // Object header, Job.next, state, loop, code. `layoutFault` checks it in debug builds.
    @usableFromInline static var offset: Int { 16 + 8 + 8 + 8 + 8 }
    static var size: Int { 24 }

    /// Returns true when a value fits in the payload. Otherwise the payload points to a separate block.
    @inlinable @inline(__always)
    static func isInline<Value: ~Copyable>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= 24 && MemoryLayout<Value>.alignment <= 8
    }

    /// Returns true when destroying a value does nothing.
    @inlinable @inline(__always)
    static func isTrivial<Value>(_ type: Value.Type) -> Bool { _isPOD(type) && isInline(type) }

    @inlinable @inline(__always)
    package func store<Value: ~Copyable>(_ value: consuming Value) {
        if Self.isInline(Value.self) {
            address.initializeMemory(as: Value.self, to: value)
        } else {
            let block = UnsafeMutablePointer<Value>.allocate(capacity: 1)
            block.initialize(to: value)
            address.storeBytes(of: block, as: UnsafeMutablePointer<Value>.self)
        }
    }

    @inlinable @inline(__always)
    package func pointer<Value: ~Copyable>(to type: Value.Type) -> UnsafeMutablePointer<Value> {
        Self.isInline(Value.self)
            ? address.assumingMemoryBound(to: Value.self) : address.load(as: UnsafeMutablePointer<Value>.self)
    }

    @inlinable @inline(__always)
    package func take<Value: ~Copyable>(_ type: Value.Type) -> Value {
        let place = pointer(to: type)
        let value = place.move()
        if !Self.isInline(Value.self) { place.deallocate() }
        return value
    }

    @inlinable @inline(__always)
    func value<Value>(as type: Value.Type) -> Value { pointer(to: type).pointee }

    // Not generic: a generic parameter would open the existential and store the error inside the box.
    @usableFromInline
    func storeError(_ error: any Error, at callSite: CallSite?) {
        address.initializeMemory(as: (any Error).self, to: error)
        (address + 8).storeBytes(of: callSite, as: CallSite?.self)
    }

    @usableFromInline
    var error: any Error { address.assumingMemoryBound(to: (any Error).self).pointee }

    func takeError() -> any Error { address.assumingMemoryBound(to: (any Error).self).move() }

    /// The call site of the promise that was rejected first; `nil` if an operator made that promise.
    @usableFromInline
    var callSite: CallSite? { (address + 8).load(as: CallSite?.self) }

    func copyError(from other: CorePayload) {
        address.initializeMemory(as: (any Error).self, to: other.error)
        (address + 8).copyMemory(from: other.address + 8, byteCount: Self.size - 8)
    }

    #if DEBUG
    // For cores kept for reuse.

    private static var poison: (UInt, UInt, UInt) { (UInt.max / 3, UInt.max / 5, UInt.max / 15) }

    func poison() { address.storeBytes(of: Self.poison, as: (UInt, UInt, UInt).self) }

    var isPoisoned: Bool { address.load(as: (UInt, UInt, UInt).self) == Self.poison }
    #endif

    func move(from other: CorePayload) { address.copyMemory(from: other.address, byteCount: Self.size) }
}
