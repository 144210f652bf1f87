// Threads of which one runs at a time, up to its next operation on shared memory: the model in which scenarios run.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { model_threads = 8, model_longest = 1 << 14 };

// What a thread is about to do.
typedef enum {
    model_begin,    // the first step of a thread
    model_start,    // starts another one
    // Of an atomic:
    model_load, model_store, model_exchange, model_compare, model_add, model_or, model_and,
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

typedef struct {
    uint8_t thread, kind;
    uint8_t enabled, asleep;  // before the step: a bit for each thread
    uint8_t other;            // the thread that is joined
    uint32_t at, also;        // numbers of the locations; 0 for none
    const void *from;         // the code that makes it
} model_step;

// Runs `body` on the first thread, with `choices` as the threads of the first steps. `asleep` are the threads that need
// no step after the last of these choices until another thread takes one that depends on theirs.
void model_run(void (*body)(void *), void *context, const uint8_t *choices, size_t count, uint8_t asleep);
// The steps of the run.
size_t model_count(void);
const model_step *model_steps(void);
// How many of them came before the state from which on all was known from other runs.
size_t model_new_count(void);
bool model_changes(uint8_t kind);
bool model_depend(const model_step *one, const model_step *other);

// The calling thread's number, or -1 outside of the model.
int model_self(void);
// Starts a thread of the model. Returns its number. One of the library may wait for work when the run ends.
int model_start_thread(void *(*body)(void *), void *context, bool is_of_library);
void model_join_thread(int thread);
// What the calling thread does from now on is no step, unless it has to wait.
void model_be_quiet(bool quiet);
// Counts of references to objects of this class and its subclasses are steps.
void model_follow(const void *class_metadata);

// An operation of an atomic of `size` bytes, with the declared orderings (of C11). Returns what was there.
uint64_t model_atomic(void *at, int size, model_kind what, uint64_t operand, uint64_t expected, int order, int failure_order);
void model_fence(int order);

// What is printed before the steps.
void model_set_title(const char *title);
// Prints the steps of the last run.
void model_print_steps(void);
void model_watch_signals(void);
// Ends the process: a scenario has failed. Prints the steps.
void model_fail(const char *reason) __attribute__((noreturn));
