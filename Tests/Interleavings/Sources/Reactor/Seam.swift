import CLinux
import Glibc
import Synchronization
import ModelThreads

// Names of this module come before imported ones: the sources of the library mean these.

@discardableResult
func sched_yield() -> CInt { modelYield() }

@discardableResult
func pthread_mutex_lock(_ lock: Lock) -> CInt { modelLock(lock) }
@discardableResult
func pthread_mutex_unlock(_ lock: Lock) -> CInt { modelUnlock(lock) }
@discardableResult
func pthread_mutex_init(_ lock: Lock, _ attributes: UnsafePointer<pthread_mutexattr_t>?) -> CInt {
    modelForget(lock)
    return Glibc.pthread_mutex_init(lock, attributes)
}
@discardableResult
func pthread_cond_init(_ condition: Condition, _ attributes: UnsafePointer<pthread_condattr_t>?) -> CInt {
    modelForget(condition)
    return Glibc.pthread_cond_init(condition, attributes)
}
@discardableResult
func pthread_mutex_destroy(_ lock: Lock) -> CInt {
    modelForget(lock)
    return Glibc.pthread_mutex_destroy(lock)
}
@discardableResult
func pthread_cond_wait(_ condition: Condition, _ lock: Lock) -> CInt { modelWait(condition, lock) }
@discardableResult
func pthread_cond_signal(_ condition: Condition) -> CInt { modelNotify(condition, all: false) }
@discardableResult
func pthread_cond_broadcast(_ condition: Condition) -> CInt { modelNotify(condition, all: true) }
@discardableResult
func pthread_cond_destroy(_ condition: Condition) -> CInt {
    modelForget(condition)
    return Glibc.pthread_cond_destroy(condition)
}

func pthread_create(
    _ handle: UnsafeMutablePointer<pthread_t>, _ attributes: UnsafePointer<pthread_attr_t>?,
    _ body: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ context: UnsafeMutableRawPointer?
) -> CInt {
    modelCreateThread(handle, body, context)
}
@discardableResult
func pthread_join(_ handle: pthread_t, _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?) -> CInt {
    modelJoin(handle)
}
@discardableResult
func pthread_detach(_ handle: pthread_t) -> CInt { modelDetach(handle) }

func epoll_wait(_ epoll: CInt, _ events: UnsafeMutablePointer<epoll_event>, _ most: CInt, _ timeout: CInt) -> CInt {
    modelSleep(epoll, timeout)
    return CLinux.epoll_wait(epoll, events, most, timeout)
}

func write(_ descriptor: CInt, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    modelWrite()
    return Glibc.write(descriptor, bytes, count)
}

/// The model wants cores that are used again also where a sanitizer watches.
func clinux_is_sanitized() -> Bool { false }
