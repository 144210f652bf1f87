#include "ModelThreads.h"
#include "parts.h"
#include <malloc.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// The linker leads the program's calls of these functions to the ones here; Package.swift lists them. In the model they are steps.

#define WRAP(result, name, ...)        \
    result __real_##name(__VA_ARGS__); \
    PLAIN result __wrap_##name(__VA_ARGS__)

// MARK: Locks and threads

WRAP(int, sched_yield, void) {
    if (model_self() < 0) return __real_sched_yield();
    STEP(model_yield, NULL, NULL, 0);
    return 0;
}

// In the model the real mutex is free at this step. It is taken for the thread sanitizer.
WRAP(int, pthread_mutex_lock, pthread_mutex_t *lock) {
    STEP(model_lock, lock, NULL, 0);
    return __real_pthread_mutex_lock(lock);
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *lock) {
    STEP(model_unlock, lock, NULL, 0);
    return __real_pthread_mutex_unlock(lock);
}

WRAP(int, pthread_mutex_init, pthread_mutex_t *lock, const pthread_mutexattr_t *attributes) {
    model_forget(lock);
    return __real_pthread_mutex_init(lock, attributes);
}

WRAP(int, pthread_cond_init, pthread_cond_t *condition, const pthread_condattr_t *attributes) {
    model_forget(condition);
    return __real_pthread_cond_init(condition, attributes);
}

WRAP(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *lock) {
    if (model_self() < 0) return __real_pthread_cond_wait(condition, lock);
    STEP(model_wait, condition, lock, 0);
    __real_pthread_mutex_unlock(lock);
    STEP(model_woken, condition, lock, 0);
    return __real_pthread_mutex_lock(lock);
}

WRAP(int, pthread_cond_signal, pthread_cond_t *condition) {
    STEP(model_notify, condition, NULL, false);
    return __real_pthread_cond_signal(condition);
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *condition) {
    STEP(model_notify, condition, NULL, true);
    return __real_pthread_cond_broadcast(condition);
}

// A thread of the model is known by its number, and joined by the model itself.
WRAP(int, pthread_create, pthread_t *handle, const pthread_attr_t *attributes, void *(*body)(void *), void *context) {
    if (model_self() < 0) return __real_pthread_create(handle, attributes, body, context);
    *handle = model_start_thread(body, context, true);
    return 0;
}

WRAP(int, pthread_join, pthread_t handle, void **result) {
    if (model_self() < 0 || handle >= model_threads) return __real_pthread_join(handle, result);
    model_join_thread((int)handle);
    return 0;
}

WRAP(int, pthread_detach, pthread_t handle) { return handle < model_threads ? 0 : __real_pthread_detach(handle); }

// MARK: The kernel

static char kernel;

WRAP(int, epoll_wait, int epoll, struct epoll_event *events, int most, int timeout) {
    STEP(timeout == 0 ? model_poll : model_sleep, &kernel, NULL, epoll);
    return __real_epoll_wait(epoll, events, most, timeout);
}

WRAP(ssize_t, write, int descriptor, const void *bytes, size_t count) {
    STEP(model_kernel, &kernel, NULL, 0);
    return __real_write(descriptor, bytes, count);
}

// Time stands still, since what a thread does may depend on it.
WRAP(int, clock_gettime, clockid_t clock, struct timespec *time) {
    static struct timespec moment;
    if (model_self() < 0) return __real_clock_gettime(clock, time);
    if (moment.tv_sec == 0) __real_clock_gettime(CLOCK_MONOTONIC, &moment);
    *time = moment;
    return 0;
}

// The model wants cores that are used again also where a sanitizer watches.
WRAP(bool, clinux_is_sanitized, void) { return false; }

// MARK: Counts of references

// The compiler inserts these calls, so each count of an object of the library is a step. (What the runtime itself calls, such as
// for the elements of an array, is not seen.)

static const void *followed[8];
static int followed_count;
PLAIN void model_follow(const void *class_metadata) { followed[followed_count++] = class_metadata; }

PLAIN static bool is_object(const void *object) { return model_self() >= 0 && (intptr_t)object > 0; }

PLAIN static bool is_followed(const void *object) {
    if (!is_object(object)) return false;
    // (The first word of metadata that is no class's is a small number.)
    for (const void *const *class = *(const void **)object; class && (uintptr_t)class[0] - 1 >= 0x7FF; class = class[1])
        for (int i = 0; i < followed_count; i++)
            if (class == followed[i]) return true;
    return false;
}

// The places in memory that is released, or was before it was allocated, are others from now on.
PLAIN static void forget_all(char *object, size_t size) {
    for (size_t offset = 0; offset < size; offset += 4) model_forget(object + offset);
}

WRAP(void *, swift_allocObject, const void *metadata, size_t size, size_t alignment) {
    char *object = __real_swift_allocObject(metadata, size, alignment);
    if (model_self() >= 0) forget_all(object, size);
    return object;
}

WRAP(void *, swift_retain, void *object) {
    if (is_followed(object)) STEP(model_retain, object, NULL, 0);
    return __real_swift_retain(object);
}

WRAP(void *, swift_retain_n, void *object, uint32_t n) {
    if (is_followed(object)) STEP(model_retain, object, NULL, 0);
    return __real_swift_retain_n(object, n);
}

PLAIN static void note_release(void *object, uint32_t n, const void *from) {
    if (!is_object(object)) return;
    bool is_step = is_followed(object);
    if (is_step) model_step_from(model_release, object, NULL, n, from);
    if (__tsan_release) __tsan_release(object);
    if (!is_step && !__tsan_acquire) return;
    if (__real_swift_retainCount(object) > n) return;
    // The last release acquires.
    if (__tsan_acquire) __tsan_acquire(object);
    if (is_step) forget_all(object, malloc_usable_size(object));
}

WRAP(void, swift_release, void *object) {
    note_release(object, 1, __builtin_return_address(0));
    __real_swift_release(object);
}

WRAP(void, swift_release_n, void *object, uint32_t n) {
    note_release(object, n, __builtin_return_address(0));
    __real_swift_release_n(object, n);
}

WRAP(size_t, swift_retainCount, void *object) {
    if (is_followed(object)) STEP(model_unique, object, NULL, 0), model_note_look(object);
    return __real_swift_retainCount(object);
}

WRAP(bool, swift_isUniquelyReferenced_nonNull_native, const void *object) {
    if (is_followed(object)) STEP(model_unique, object, NULL, 0), model_note_look((void *)object);
    return __real_swift_isUniquelyReferenced_nonNull_native(object);
}
