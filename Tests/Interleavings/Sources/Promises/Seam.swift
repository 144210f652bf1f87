import CLinux
import Glibc
import Synchronization
import ModelThreads

// Names of this module come before imported ones: the sources of the library mean these.

@discardableResult
func sched_yield() -> CInt { modelYield() }

// The same signature as in the standard library, or that one would be called.
@usableFromInline
func isKnownUniquelyReferenced<T: AnyObject>(_ object: inout T) -> Bool {
    model_look_at_count(Unmanaged.passUnretained(object).toOpaque(), nil, 0)
    return Swift.isKnownUniquelyReferenced(&object)
}

func clinux_reference_count(_ object: UnsafeMutableRawPointer) -> Int {
    model_look_at_count(object, nil, 0)
    return CLinux.clinux_reference_count(object)
}
