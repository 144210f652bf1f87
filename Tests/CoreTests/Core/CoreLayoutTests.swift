import TestSupport
import Testing

@testable import Promises

/// A field at an offset that the core's code does not expect is reported by name. `LayoutGuardTests` adds one.
@Suite struct CoreLayoutTests {
    private let core = PromiseCore(state: .pending, loop: nil, code: .none)

    @Test func theFieldsAreWhereTheCodeExpectsThem() {
        expectEqual(CoreLayout().fault(in: core), nil)
        // Restored, so that nothing is dropped.
        expect(core.hasPayload(at: core.payload.address.assumingMemoryBound(to: UInt.self)))
    }

    @Test func whatAReadHasFoundNeedsNoBlock() { expect(CorePayload.isInline(ReadOutcome.self)) }

    @Test(arguments: [-8, 8]) func aPayloadThatIsElsewhereIsNamed(by distance: Int) throws {
        let layout = CoreLayout(payloadOffset: CorePayload.offset + distance)
        let fault = try #require(layout.fault(in: core))
        expect(fault.hasPrefix("PromiseCore.payload does not begin at byte \(layout.payloadOffset)"))
    }
}
