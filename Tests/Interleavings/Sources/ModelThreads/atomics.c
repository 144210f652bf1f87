#include "ModelThreads.h"
#include "parts.h"

// The operations themselves, with the declared orderings. This file is instrumented: the thread sanitizer knows which accesses
// the library has ordered.

// An acquiring fence orders what these relaxed loads have read before what follows. The sanitizer does not know fences.
enum { remembered = 8 };
static _Thread_local void *loaded[remembered];
static _Thread_local unsigned loads;

PLAIN void model_note_look(void *at) { loaded[loads++ % remembered] = at; }

PLAIN void model_fence(int order) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (order == __ATOMIC_RELAXED || order == __ATOMIC_RELEASE || !__tsan_acquire) return;
    for (unsigned i = 0; i < remembered; i++)
        if (loaded[i]) __tsan_acquire(loaded[i]);
}

#define OPERATION(type, name)                                                                               \
    static uint64_t name(type *at, model_kind what, type operand, type expected, int order, int failure) { \
        switch (what) {                                                                                     \
        case model_load: return __atomic_load_n(at, order);                                                 \
        case model_store: __atomic_store_n(at, operand, order); return 0;                                   \
        case model_exchange: return __atomic_exchange_n(at, operand, order);                                \
        case model_add: return __atomic_fetch_add(at, operand, order);                                      \
        case model_or: return __atomic_fetch_or(at, operand, order);                                        \
        case model_and: return __atomic_fetch_and(at, operand, order);                                      \
        default: __atomic_compare_exchange_n(at, &expected, operand, 0, order, failure);                    \
        }                                                                                                   \
        return expected;                                                                                    \
    }

OPERATION(uint8_t, on_byte)
OPERATION(uint32_t, on_half)
OPERATION(uint64_t, on_word)

uint64_t model_atomic(void *at, int size, model_kind what, uint64_t operand, uint64_t expected, int order, int failure_order) {
    STEP(what, at, NULL, 0);
    if (order == __ATOMIC_RELAXED && what != model_store) model_note_look(at);
    switch (size) {
    case 1: return on_byte(at, what, (uint8_t)operand, (uint8_t)expected, order, failure_order);
    case 4: return on_half(at, what, (uint32_t)operand, (uint32_t)expected, order, failure_order);
    default: return on_word(at, what, operand, expected, order, failure_order);
    }
}
