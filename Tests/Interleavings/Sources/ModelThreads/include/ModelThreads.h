// Threads of which one runs at a time, up to its next operation on shared memory: the model in which scenarios run.
#ifndef MODEL_THREADS_H
#define MODEL_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a thread is about to do.
typedef enum {
    model_begin,    // the first step of a thread
    model_start,    // starts another one
    model_load,     // of an atomic
    model_update,   // any other operation of an atomic
    model_lock,     // of a mutex; not while it is locked
    model_unlock,
    model_notify,   // of a condition
    model_wait,     // unlocks `also`, and is in the list of the condition
    model_woken,    // locks `also`; not before the condition was notified
    model_join,     // not before the thread has ended
    model_yield,    // not before another thread has changed what this one has loaded last
    model_sleep,    // of epoll; not before there is an event
    model_poll,     // of epoll, without waiting
    model_kernel,   // a write to a descriptor
    model_retain,   // of an object
    model_release,
    model_last,     // a release of the only reference
    model_unique,   // looks whether its reference is the only one
} model_kind;

// The calling thread's number, or -1 outside of the model.
int model_self(void);
// Starts a thread of the model, which calls `body`. Returns its number.
int model_start_thread(void *(*body)(void *), void *context);
void model_join_thread(int thread);
int model_number_of(pthread_t thread);
pthread_t model_handle(int thread);

// Each is one step: it returns when the thread may do it.
void model_at(model_kind kind, const void *at, const void *also, long argument, const char *name, const char *file, uint32_t line);
// The address is no location any more: an operation there is a use of released memory.
void model_forget(const void *at);

// An operation of an atomic of `size` bytes, with the declared orderings (of C11). Returns what was there.
typedef enum {
    model_get, model_set, model_swap, model_compare, model_add, model_or, model_and, model_maximum, model_minimum
} model_operator;
uint64_t model_atomic(void *at, int size, model_operator what, uint64_t operand, uint64_t expected, int order, int failure_order,
    const char *name, const char *file, uint32_t line);
void model_fence(int order);

void model_look_at_count(const void *object, const char *file, uint32_t line);

// Ends the process: a scenario has failed. Prints the steps.
void model_fail(const char *reason) __attribute__((noreturn));
#endif
