#define _GNU_SOURCE
#include "ModelThreads.h"
#include "../ModelRuns/include/ModelRuns.h"
#include "parts.h"
#include <dlfcn.h>
#include <malloc.h>
#include <time.h>

// References are counted by calls of the runtime's functions, which the compiler inserts or the library makes. The program's own
// functions of these names come first, so each count of an object of the library is a step, wherever it comes from. (What the
// runtime itself calls, such as for the elements of an array, is not seen.)

static void *(*allocate)(const void *metadata, size_t size, size_t alignment);
static void *(*retain)(void *object);
static void *(*retain_n)(void *object, uint32_t n);
static void (*release)(void *object);
static void (*release_n)(void *object, uint32_t n);
static size_t (*count)(void *object);

PLAIN static void find(void) {
    count = (size_t (*)(void *))dlsym(RTLD_NEXT, "swift_retainCount");
    allocate = (void *(*)(const void *, size_t, size_t))dlsym(RTLD_NEXT, "swift_allocObject");
    retain_n = (void *(*)(void *, uint32_t))dlsym(RTLD_NEXT, "swift_retain_n");
    release_n = (void (*)(void *, uint32_t))dlsym(RTLD_NEXT, "swift_release_n");
    release = (void (*)(void *))dlsym(RTLD_NEXT, "swift_release");
    retain = (void *(*)(void *))dlsym(RTLD_NEXT, "swift_retain");
}

#define FOUND(function) (function ? function : (find(), function))

PLAIN size_t references_to(void *object) { return FOUND(count)(object); }

// MARK: Which objects

enum { most_classes = 8, kept = 1 << 10 };
static const void *followed[most_classes];
static int followed_count;
static struct { const void *metadata; bool is_followed; } known[kept];

PLAIN void model_follow(const void *class_metadata) { followed[followed_count++] = class_metadata; }

PLAIN static bool is_subclass(const void *metadata) {
    for (const void *const *class = metadata; class; class = class[1]) {
        // The first word of other metadata is a small number.
        if ((uintptr_t)class[0] - 1 < 0x7FF) return false;
        for (int i = 0; i < followed_count; i++)
            if (class == followed[i]) return true;
    }
    return false;
}

PLAIN static bool is_object(void *object) { return model_self() >= 0 && (intptr_t)object > 0; }

PLAIN static bool is_followed(void *object) {
    if (!is_object(object)) return false;
    const void *metadata = *(const void **)object;
    size_t place = (uintptr_t)metadata / 8 % kept;
    if (known[place].metadata != metadata) {
        known[place].is_followed = is_subclass(metadata);
        known[place].metadata = metadata;
    }
    return known[place].is_followed;
}

// MARK: Steps

// The places in memory that is released, or was before it was allocated, are others from now on.
PLAIN static void forget_all(char *object, size_t size) {
    for (size_t offset = 0; offset < size; offset += 4) model_forget(object + offset);
}

PLAIN void *swift_allocObject(const void *metadata, size_t size, size_t alignment) {
    char *object = FOUND(allocate)(metadata, size, alignment);
    if (model_self() >= 0) forget_all(object, size);
    return object;
}

PLAIN void *swift_retain(void *object) {
    if (is_followed(object)) model_at(model_retain, object, NULL, 0, "retain", NULL, 0);
    return FOUND(retain)(object);
}

PLAIN void *swift_retain_n(void *object, uint32_t n) {
    if (is_followed(object)) model_at(model_retain, object, NULL, 0, "retain", NULL, 0);
    return FOUND(retain_n)(object, n);
}

PLAIN static void note_release(void *object, uint32_t n) {
    if (!is_object(object)) return;
    bool is_step = is_followed(object);
    if (is_step) model_at(model_release, object, NULL, n, "release", NULL, 0);
    if (__tsan_release) __tsan_release(object);
    if (!is_step && !__tsan_acquire) return;
    if (references_to(object) > n) return;
    // The last release acquires.
    if (__tsan_acquire) __tsan_acquire(object);
    if (is_step) forget_all(object, malloc_usable_size(object));
}

PLAIN void swift_release(void *object) {
    note_release(object, 1);
    FOUND(release)(object);
}

PLAIN void swift_release_n(void *object, uint32_t n) {
    note_release(object, n);
    FOUND(release_n)(object, n);
}

void model_note_look(void *at);

PLAIN void model_look_at_count(const void *object, const char *file, uint32_t line) {
    model_at(model_unique, object, NULL, 0, "isKnownUniquelyReferenced", file, line);
    if (model_self() >= 0) model_note_look((void *)object);
}

// MARK: Time

// It stands still, since what a thread does may depend on it.
PLAIN int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    static struct timespec moment;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (model_self() < 0) return real(clock, time);
    if (moment.tv_sec == 0) real(CLOCK_MONOTONIC, &moment);
    *time = moment;
    return 0;
}
