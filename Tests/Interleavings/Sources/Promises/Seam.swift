import CLinux
import Glibc
import Synchronization
import ModelThreads

// Names of this module come before imported ones: the sources of the library mean these.

@discardableResult
func sched_yield() -> CInt { modelYield() }

@usableFromInline
func isKnownUniquelyReferenced<Object: AnyObject>(
    _ object: inout Object, file: StaticString = #fileID, line: UInt = #line
) -> Bool {
    model_look_at_count(
        Unmanaged.passUnretained(object).toOpaque(),
        UnsafeRawPointer(file.utf8Start).assumingMemoryBound(to: CChar.self),
        UInt32(line))
    return Swift.isKnownUniquelyReferenced(&object)
}
