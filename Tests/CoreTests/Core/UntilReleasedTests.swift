import TestSupport
import Testing

@testable import Promises

@Suite struct UntilReleasedTests {
    /// Has the reference, as a clock has that to its connection.
    // @unchecked: a constant, made for several threads.
    private final class Holder: @unchecked Sendable {
        let reference: UntilReleased<Object>
        init(_ object: Object) { reference = UntilReleased(object) }
    }

    // @unchecked: what is in it is used by one thread after the other.
    private final class Object: @unchecked Sendable {
        let value = 7
        var holder: Holder?
        let isBeingReleased: () -> Void

        init(isBeingReleased: @escaping () -> Void = {}) {
            self.isBeingReleased = isBeingReleased
            holder = Holder(self)
        }

        deinit {
            isBeingReleased()
            holder?.reference.end()
        }
    }

    /// Passes the only reference to another thread.
    // @unchecked: what is in it is used by one thread after the other.
    private final class Parcel: @unchecked Sendable {
        var object: Object?
    }

    @Test func itLeadsToTheObjectUntilItIsReleased() throws {
        var object: Object? = Object()
        let holder = try #require(object?.holder)
        expectEqual(holder.reference.borrow { $0.value }, 7)
        expect(holder.reference.borrow { $0 === object } == true)
        object = nil
        expect(holder.reference.borrow { $0.value } == nil)
    }

    @Test func theObjectWaitsUntilItIsGivenBack() throws {
        let (isBorrowed, isBeingReleased) = (Gate(), Gate())
        let parcel = Parcel()
        parcel.object = Object { isBeingReleased.open() }
        let holder = try #require(parcel.object?.holder)
        let thread = TestThread {
            isBorrowed.wait()
            parcel.object = nil
        }
        let value = holder.reference.borrow { object in
            isBorrowed.open()
            isBeingReleased.wait()
            return object.value
        }
        expectEqual(value, 7)
        thread.join()
        expect(holder.reference.borrow { $0.value } == nil)
    }

    /// Each borrows while the other releases: it gets an object that is whole, or none.
    @Test func itIsBorrowedWhileTheLastReferenceGoes() throws {
        for _ in 0..<scaled(2000) {
            let parcel = Parcel()
            parcel.object = Object()
            let holder = try #require(parcel.object?.holder)
            let ready = Gate()
            let thread = TestThread {
                ready.open()
                parcel.object = nil
            }
            ready.wait()
            while let value = holder.reference.borrow({ $0.value }) { precondition(value == 7) }
            thread.join()
        }
    }
}
