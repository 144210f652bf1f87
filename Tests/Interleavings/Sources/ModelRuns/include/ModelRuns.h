// How the runs of a scenario are begun, and what their steps were. (The library is not compiled anew when this changes.)
#ifndef MODEL_RUNS_H
#define MODEL_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { model_threads = 8, model_longest = 1 << 14 };

typedef struct {
    uint8_t thread, kind;
    uint8_t enabled, asleep;  // before the step: a bit for each thread
    uint8_t other;            // the thread that is joined
    uint32_t at, also;        // numbers of the locations; 0 for none
    uint32_t line;
    const char *name, *file;
} model_step;

// Runs `body` on the first thread, with `choices` as the threads of the first steps. `asleep` are the threads that need
// no step after the last of these choices until another thread takes one that depends on theirs.
void model_run(void (*body)(void *), void *context, const uint8_t *choices, size_t count, uint8_t asleep);
// The steps of the run.
size_t model_count(void);
const model_step *model_steps(void);
// How many of them came before the state from which on all was known from other runs.
size_t model_new_count(void);
bool model_depend(const model_step *one, const model_step *other);

// As model_start_thread, for the scenario itself: the thread ends with the run.
int model_start_own_thread(void *(*body)(void *), void *context);
// What the calling thread does from now on is no step, unless it has to wait.
void model_be_quiet(bool quiet);

// Counts of references to objects of these classes and their subclasses are steps.
void model_follow(const void *class_metadata);

// What is printed before the steps.
void model_set_title(const char *title);
// Prints the steps of the last run.
void model_print_steps(void);
void model_watch_signals(void);

#endif
