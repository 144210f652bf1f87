#include "ModelThreads.h"
#include "parts.h"

// The operations themselves, with the declared orderings. This file is instrumented: the thread sanitizer knows which accesses
// the library has ordered.

// An acquiring fence orders what these relaxed loads have read before what follows. The sanitizer does not know fences.
enum { remembered = 8 };
static _Thread_local void *loaded[remembered];
static _Thread_local unsigned loads;

PLAIN static void remember(void *at) { loaded[loads++ % remembered] = at; }

PLAIN void model_fence(int order) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (order == __ATOMIC_RELAXED || order == __ATOMIC_RELEASE || !__tsan_acquire) return;
    for (unsigned i = 0; i < remembered; i++)
        if (loaded[i]) __tsan_acquire(loaded[i]);
}

void model_note_look(void *at) { remember(at); }

#define OPERATION(type, name)                                                                                  \
    static uint64_t name(type *at, model_operator what, type operand, type expected, int order, int failure) { \
        switch (what) {                                                                                        \
        case model_get: return __atomic_load_n(at, order);                                                     \
        case model_set: __atomic_store_n(at, operand, order); return 0;                                        \
        case model_swap: return __atomic_exchange_n(at, operand, order);                                       \
        case model_add: return __atomic_fetch_add(at, operand, order);                                         \
        case model_or: return __atomic_fetch_or(at, operand, order);                                           \
        case model_and: return __atomic_fetch_and(at, operand, order);                                         \
        case model_maximum: return __atomic_fetch_max(at, operand, order);                                     \
        case model_minimum: return __atomic_fetch_min(at, operand, order);                                     \
        case model_compare: __atomic_compare_exchange_n(at, &expected, operand, 0, order, failure);            \
        }                                                                                                      \
        return expected;                                                                                       \
    }

OPERATION(uint8_t, on_byte)
OPERATION(uint32_t, on_half)
OPERATION(uint64_t, on_word)

uint64_t model_atomic(void *at, int size, model_operator what, uint64_t operand, uint64_t expected, int order, int failure_order,
    const char *name, const char *file, uint32_t line) {
    model_at(what == model_get ? model_load : model_update, at, NULL, 0, name, file, line);
    if (order == __ATOMIC_RELAXED && what != model_set) remember(at);
    switch (size) {
    case 1: return on_byte(at, what, (uint8_t)operand, (uint8_t)expected, order, failure_order);
    case 4: return on_half(at, what, (uint32_t)operand, (uint32_t)expected, order, failure_order);
    default: return on_word(at, what, operand, expected, order, failure_order);
    }
}
