// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Glibc
import ModelThreads

// Locks, conditions and threads. Outside of the model they are the real ones; in it they are steps, and the real ones are not used.

public var isInModel: Bool { model_self() >= 0 }

public struct Mutex<Value: ~Copyable>: ~Copyable {
    private let lock = Lock.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    public init(_ value: consuming sending Value) {
        pthread_mutex_init(lock, nil)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        model_forget(lock)
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        modelLock(lock)
        defer { modelUnlock(lock) }
        return try body(&value.pointee)
    }
}

// As the one that it stands for.
extension Mutex: @unchecked Sendable where Value: ~Copyable {}

public typealias Lock = UnsafeMutablePointer<pthread_mutex_t>
public typealias Condition = UnsafeMutablePointer<pthread_cond_t>

@discardableResult
public func modelLock(_ lock: Lock) -> CInt {
    guard isInModel else { return pthread_mutex_lock(lock) }
    model_at(model_lock, lock, nil, 0, "lock", nil, 0)
    acquire(lock)
    return 0
}

@discardableResult
public func modelUnlock(_ lock: Lock) -> CInt {
    guard isInModel else { return pthread_mutex_unlock(lock) }
    model_at(model_unlock, lock, nil, 0, "unlock", nil, 0)
    pthread_mutex_unlock(lock)
    return 0
}

// Uncontended, and for the thread sanitizer.
private func acquire(_ lock: Lock) { pthread_mutex_lock(lock) }

@discardableResult
public func modelWait(_ condition: Condition, _ lock: Lock) -> CInt {
    guard isInModel else { return pthread_cond_wait(condition, lock) }
    model_at(model_wait, condition, lock, 0, "wait", nil, 0)
    pthread_mutex_unlock(lock)
    model_at(model_woken, condition, lock, 0, "woken", nil, 0)
    acquire(lock)
    return 0
}

@discardableResult
public func modelNotify(_ condition: Condition, all: Bool) -> CInt {
    guard isInModel else { return all ? pthread_cond_broadcast(condition) : pthread_cond_signal(condition) }
    model_at(model_notify, condition, nil, all ? 1 : 0, all ? "notify all" : "notify", nil, 0)
    return 0
}

public func modelForget(_ place: UnsafeRawPointer) { model_forget(place) }

@discardableResult
public func modelYield() -> CInt {
    guard isInModel else { return sched_yield() }
    model_at(model_yield, nil, nil, 0, "sched_yield", nil, 0)
    return 0
}

public func modelCreateThread(
    _ handle: UnsafeMutablePointer<pthread_t>,
    _ body: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ context: UnsafeMutableRawPointer?
) -> CInt {
    guard isInModel else { return pthread_create(handle, nil, body, context) }
    handle.pointee = model_handle(model_start_thread(body, context))
    return 0
}

@discardableResult
public func modelJoin(_ handle: pthread_t) -> CInt {
    let number = isInModel ? model_number_of(handle) : -1
    guard number >= 0 else { return pthread_join(handle, nil) }
    model_join_thread(number)
    return 0
}

/// The model itself joins its threads.
@discardableResult
public func modelDetach(_ handle: pthread_t) -> CInt {
    isInModel && model_number_of(handle) >= 0 ? 0 : pthread_detach(handle)
}

public func modelSleep(_ epoll: CInt, _ timeout: CInt) {
    let kernel = UnsafeRawPointer(bitPattern: 8)
    model_at(
        timeout == 0 ? model_poll : model_sleep, kernel, nil, Int(epoll), timeout == 0 ? "epoll" : "epoll, waiting",
        nil, 0)
}

public func modelWrite() { model_at(model_kernel, UnsafeRawPointer(bitPattern: 8), nil, 0, "write", nil, 0) }
