import Reactor

/// Assumptions of `PromiseCore` about its layout, which the compiler does not check. A debug build checks them on each
/// new core, so that a stored property added to `Job` or `PromiseCore` ends the first program that makes a promise,
/// with the field's name, instead of corrupting memory in a later one.
struct CoreLayout {
    /// The offset of the payload from the object's address, in bytes.
    var payloadOffset = CorePayload.offset

    /// The first field of a new core that is not where the code expects it, with the code that relies on it. No other
    /// party has seen the core yet.
    func fault(in core: PromiseCore) -> String? {
        let address = core.ref.pointer
        if UInt(bitPattern: address) & ~StateWord.addressMask != 0 {
            return "the address of a core has low bits, which StateWord uses for its marks"
        }
        if Self.hasSideTable(core.ref) {
            return "the reference counts are not where CoreLayout.hasSideTable reads them"
        }
        let words = (address + payloadOffset).assumingMemoryBound(to: UInt.self)
        if !core.hasPayload(at: words) {
            return "PromiseCore.payload does not begin at byte \(payloadOffset), as CorePayload.offset says"
        }
        // The two constants before the payload, which SpareCores.reuse writes.
        if words[-2] != core.loop?.address ?? 0 {
            return "PromiseCore.loop is not at byte \(payloadOffset - 16), where SpareCores.reuse writes it"
        }
        if words[-1] != core.code.bits {
            return "PromiseCore.code is not at byte \(payloadOffset - 8), where SpareCores.reuse writes it"
        }
        return nil
    }

    /// Ends the process if the layout of this new core differs.
    static func check(_ core: PromiseCore) {
        if let fault = CoreLayout().fault(in: core) { fatalError("swift-reactor: \(fault)") }
    }

    /// For assertions: whether the runtime counts the core's references in a side table, as it does from the first weak
    /// reference on. The word after the metadata then has its two highest bits set.
    static func hasSideTable(_ core: CoreRef) -> Bool {
        (core.pointer + 8).load(as: UInt.self) >> 62 == 3
    }
}
