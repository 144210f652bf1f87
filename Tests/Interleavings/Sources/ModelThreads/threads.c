#define _GNU_SOURCE
#include "ModelThreads.h"
#include "../ModelRuns/include/ModelRuns.h"
#include "parts.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// One thread has the baton. At its next operation it writes down what it is about to do, chooses who continues, and passes the
// baton on, unless it has chosen itself. So everything below is used by one thread at a time. The thread sanitizer is not to see
// the baton: what it sees between two threads is then what the library itself has ordered.

static const char *title = "";
PLAIN void model_set_title(const char *text) { title = text; }

typedef struct {
    enum { none, ready, ended } stage;
    int *may_run;
    model_step next;
    uintptr_t at, also;
    long argument;
    // For model_yield: the location that was loaded last, and how often it had changed.
    uint32_t loaded, seen;
    void *(*body)(void *);
    void *context;
    pthread_t handle;
    int *number;  // the thread's own variable
    // Of a pool that the library keeps for the process: it may wait for work when a run ends, and does when the next one begins.
    bool is_of_library;
} slot;

typedef struct {
    uint32_t changes;
    int owner;       // of a mutex, and one more; 0 if it is not locked
    uint8_t waiting; // of a condition: a bit for each thread
    uint8_t notified;
} location;

static struct {
    slot slots[model_threads];
    int count;
    model_step steps[model_longest];
    size_t length;
    location locations[model_longest];
    uint32_t location_count;
    const uint8_t *choices;
    size_t choice_count;
    uint8_t asleep_after_choices, asleep;
    bool is_redundant;
    size_t new_count;
    int is_over;
} run;

static _Thread_local int self = -1;
// What the thread does now is no step, unless it has to wait.
static _Thread_local bool is_quiet;
static pthread_key_t end_of_thread;

PLAIN int model_self(void) { return self; }
PLAIN void model_be_quiet(bool quiet) { is_quiet = quiet; }
PLAIN size_t model_count(void) { return run.length; }
PLAIN const model_step *model_steps(void) { return run.steps; }
PLAIN size_t model_new_count(void) { return run.is_redundant ? run.new_count : run.length; }

// MARK: Locations

// Numbers of addresses, in the order of their first use: a run with the same choices has the same numbers.
enum { places = 1 << 16 };
static struct { uintptr_t address; uint32_t number; uint32_t round; } table[places];
static uint32_t table_round = 1;
enum { kernel_location = 1 };

PLAIN static size_t place_of(uintptr_t address) {
    size_t place = (address >> 2) * 0x9E3779B97F4A7C15u >> 48;
    while (table[place].round == table_round && table[place].address != address) place = (place + 1) % places;
    return place;
}

PLAIN static uint32_t number_of(uintptr_t address) {
    if (address == 0) return 0;
    size_t place = place_of(address);
    if (table[place].round != table_round || table[place].number == 0) {
        if (run.location_count + 1 >= model_longest) model_fail("too many locations");
        table[place].address = address;
        table[place].round = table_round;
        table[place].number = ++run.location_count;
        memset(&run.locations[run.location_count], 0, sizeof(location));
    }
    return table[place].number;
}

PLAIN void model_forget(const void *at) {
    size_t place = place_of((uintptr_t)at);
    if (table[place].round == table_round) table[place].number = 0;
}

// MARK: Dependence

PLAIN static bool changes(uint8_t kind) {
    return kind != model_load && kind != model_yield && kind != model_sleep && kind != model_poll;
}

PLAIN static bool counts(uint8_t kind) { return kind >= model_retain; }

// Whether the order of the two steps matters.
PLAIN bool model_depend(const model_step *one, const model_step *other) {
    if (one->thread == other->thread) return true;
    bool shared = (one->at && (one->at == other->at || one->at == other->also)) || (one->also && (one->also == other->at || one->also == other->also));
    if (!shared) return false;
    if (counts(one->kind) && counts(other->kind)) {
        if (one->kind == model_unique || other->kind == model_unique) return one->kind != other->kind;
        return one->kind == model_last || other->kind == model_last;
    }
    return changes(one->kind) || changes(other->kind);
}

// MARK: Choosing

PLAIN static bool is_enabled(const slot *s) {
    if (s->stage != ready) return false;
    const location *at = &run.locations[s->next.at], *also = &run.locations[s->next.also];
    switch (s->next.kind) {
    case model_lock: return at->owner == 0;
    case model_woken: return also->owner == 0 && (at->notified >> (s - run.slots) & 1);
    case model_join: return run.slots[s->argument].stage == ended;
    case model_yield: return s->loaded == 0 || run.locations[s->loaded].changes != s->seen;
    case model_sleep: {
        struct pollfd entry = {.fd = (int)s->argument, .events = POLLIN};
        return poll(&entry, 1, 0) != 0;
    }
    default: return true;
    }
}

// The kind that a release has now.
PLAIN static void update_kind(slot *s) {
    if (s->stage == ready && (s->next.kind == model_release || s->next.kind == model_last))
        s->next.kind = references_to((void *)s->at) <= (size_t)s->argument ? model_last : model_release;
}

PLAIN static void note_effect(int thread) {
    slot *s = &run.slots[thread];
    location *at = &run.locations[s->next.at], *also = &run.locations[s->next.also];
    switch (s->next.kind) {
    case model_load:
        s->loaded = s->next.at;
        s->seen = at->changes;
        return;
    case model_yield: return;
    case model_lock: at->owner = thread + 1; break;
    case model_unlock: at->owner = 0; break;
    case model_wait:
        at->waiting |= 1 << thread;
        also->owner = 0;
        also->changes++;
        break;
    case model_woken:
        at->notified &= ~(1 << thread);
        also->owner = thread + 1;
        break;
    case model_notify:
        if (s->argument) {
            at->notified |= at->waiting;
            at->waiting = 0;
        } else if (at->waiting) {
            uint8_t first = at->waiting & -at->waiting;
            at->notified |= first;
            at->waiting &= ~first;
        }
        break;
    }
    at->changes++;
    if (s->next.kind == model_update) {
        s->loaded = s->next.at;
        s->seen = at->changes;
    }
}

PLAIN static void futex_wait(int *word, long seconds) {
    struct timespec limit = {.tv_sec = seconds};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, seconds ? &limit : NULL, 0, 0);
}

PLAIN static void pass_to(int *word) {
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

PLAIN static void await_baton(int *word) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) futex_wait(word, 0);
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

// Chooses the thread of the next step, and notes the step. -1: all have ended.
PLAIN static int choose(int current) {
    uint8_t enabled = 0;
    bool have_all_ended = true, do_all_serve = true;
    for (int i = 0; i < run.count; i++) {
        update_kind(&run.slots[i]);
        if (is_enabled(&run.slots[i])) enabled |= 1 << i;
        if (run.slots[i].stage != ready) continue;
        have_all_ended = false;
        if (!run.slots[i].is_of_library || run.slots[i].next.kind != model_woken) do_all_serve = false;
    }
    if (have_all_ended || (enabled == 0 && do_all_serve)) return -1;
    if (enabled == 0) model_fail("all threads wait for one another");
    if (run.length == model_longest) model_fail("a run that does not end");
    int chosen;
    uint8_t asleep = run.asleep;
    if (run.length < run.choice_count) {
        chosen = run.choices[run.length];
        if (!(enabled >> chosen & 1)) {
            // It differs from the run before: see Explorer.
            run.choice_count = 0;
            return choose(current);
        }
        asleep = run.length + 1 == run.choice_count ? run.asleep_after_choices : 0;
    } else {
        uint8_t awake = enabled & ~asleep;
        if (awake == 0) {
            if (!run.is_redundant) run.new_count = run.length;
            run.is_redundant = true;
            asleep = 0;
            awake = enabled;
        }
        chosen = current >= 0 && (awake >> current & 1) ? current : __builtin_ctz(awake);
    }
    slot *s = &run.slots[chosen];
    s->next.enabled = enabled;
    s->next.asleep = asleep;
    run.steps[run.length++] = s->next;
    run.asleep = 0;
    if (asleep && !run.is_redundant)
        for (int i = 0; i < run.count; i++)
            if ((asleep >> i & 1) && i != chosen && !model_depend(&run.slots[i].next, &s->next)
                && !(counts(s->next.kind) && counts(run.slots[i].next.kind) && s->next.at == run.slots[i].next.at && references_to((void *)s->at) <= 2))
                run.asleep |= 1 << i;
    note_effect(chosen);
    return chosen;
}

// Of steps without a line of their own.
static const char *const names[] = {
    "begins", "starts a thread", "load", "update", "lock", "unlock", "notify", "wait", "woken", "joins a thread", "sched_yield",
    "epoll, waiting", "epoll", "write", "retain", "release", "last release", "isKnownUniquelyReferenced"};

PLAIN void model_at(model_kind kind, const void *at, const void *also, long argument, const char *name, const char *file, uint32_t line) {
    if (self < 0) return;
    slot *s = &run.slots[self];
    if (is_quiet) {
        const location *lock = &run.locations[number_of((uintptr_t)at)];
        bool may_wait = kind == model_lock ? lock->owner != 0 : kind == model_unlock ? lock->owner == self + 1
            : kind == model_wait || kind == model_woken || kind == model_join || kind == model_yield || kind == model_sleep;
        if (!may_wait) {
            if (kind == model_lock || kind == model_unlock) return;
            s->next = (model_step){.kind = kind, .at = number_of((uintptr_t)at)};
            s->argument = argument;
            return note_effect(self);
        }
    }
    s->at = (uintptr_t)at;
    s->also = (uintptr_t)also;
    s->argument = argument;
    s->next = (model_step){.thread = self, .kind = kind, .at = number_of(s->at), .also = number_of(s->also), .other = (uint8_t)argument, .line = line, .name = file ? name : names[kind], .file = file};
    if (kind == model_yield) s->next.at = s->loaded;
    int error = errno;
    int chosen = choose(self);
    if (chosen != self) {
        pass_to(chosen < 0 ? &run.is_over : run.slots[chosen].may_run);
        await_baton(s->may_run);
    }
    errno = error;
}

// MARK: Threads

PLAIN static void end_thread(void) {
    int number = self;
    self = -1;
    run.slots[number].stage = ended;
    int chosen = choose(-1);
    pass_to(chosen < 0 ? &run.is_over : run.slots[chosen].may_run);
}

// The thread's loop ends in the first round of destructors; in the second one the thread has ended.
PLAIN static void note_end(void *rounds) {
    if ((uintptr_t)rounds < 2) pthread_setspecific(end_of_thread, (void *)((uintptr_t)rounds + 1));
    else end_thread();
}

PLAIN static void *main_of_thread(void *number) {
    slot *s = &run.slots[(uintptr_t)number];
    await_baton(s->may_run);
    self = (int)(uintptr_t)number;
    s->number = &self;
    pthread_setspecific(end_of_thread, (void *)1);
    return s->body(s->context);
}

// Threads of pools that wait for work, from the last run.
static slot servers[model_threads];
static int served;

static int batons[2 * model_threads];

PLAIN static int *free_baton(void) {
    for (int *baton = batons;; baton++) {
        bool is_free = true;
        for (int i = 0; i < run.count; i++) is_free &= run.slots[i].may_run != baton;
        for (int i = 0; i < served; i++) is_free &= servers[i].may_run != baton;
        if (is_free) return baton;
    }
}

PLAIN static int add(void *(*body)(void *), void *context, bool is_of_library) {
    if (run.count == model_threads) model_fail("too many threads");
    int *baton = free_baton();
    *baton = 0;
    int number = run.count++;
    run.slots[number] = (slot){.stage = ready, .may_run = baton, .is_of_library = is_of_library, .body = body, .context = context, .next = {.thread = number, .kind = model_begin, .name = "begins"}};
    if (pthread_create(&run.slots[number].handle, NULL, main_of_thread, (void *)(uintptr_t)number) != 0) model_fail("no thread");
    return number;
}

PLAIN int model_start_thread(void *(*body)(void *), void *context) {
    model_at(model_start, NULL, NULL, 0, "starts a thread", NULL, 0);
    return add(body, context, true);
}

PLAIN int model_start_own_thread(void *(*body)(void *), void *context) {
    model_at(model_start, NULL, NULL, 0, "starts a thread", NULL, 0);
    return add(body, context, false);
}

PLAIN void model_join_thread(int thread) { model_at(model_join, NULL, NULL, thread, "joins a thread", NULL, 0); }

PLAIN int model_number_of(pthread_t thread) {
    for (int i = 0; i < run.count; i++)
        if (pthread_equal(run.slots[i].handle, thread)) return i;
    return -1;
}

PLAIN pthread_t model_handle(int thread) { return run.slots[thread].handle; }

PLAIN static void serve(int index) {
    slot *s = &run.slots[run.count];
    *s = servers[index];
    s->next.thread = run.count++;
    s->next.at = number_of(s->at);
    s->next.also = number_of(s->also);
    run.locations[s->next.at].waiting |= 1 << s->next.thread;
    __atomic_store_n(s->number, s->next.thread, __ATOMIC_RELAXED);
}

static void (*first_body)(void *);
PLAIN static void *run_first(void *context) {
    first_body(context);
    return NULL;
}

PLAIN void model_run(void (*body)(void *), void *context, const uint8_t *choices, size_t count, uint8_t asleep) {
    static bool is_prepared;
    if (!is_prepared) {
        pthread_key_create(&end_of_thread, note_end);
        // On one core the baton is passed in a third of the time.
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    is_prepared = true;
    table_round++;
    run.count = 0;
    run.length = 0;
    run.location_count = kernel_location;
    memset(&run.locations[0], 0, 2 * sizeof(location));
    run.choices = choices;
    run.choice_count = count;
    run.asleep_after_choices = asleep;
    run.asleep = 0;
    run.is_redundant = false;
    run.is_over = 0;
    first_body = body;
    add(run_first, context, false);
    for (int i = 0; i < served; i++) serve(i);
    pass_to(run.slots[choose(-1)].may_run);
    for (size_t length = 0; __atomic_load_n(&run.is_over, __ATOMIC_ACQUIRE) == 0;) {
        futex_wait(&run.is_over, 20);
        if (__atomic_load_n(&run.is_over, __ATOMIC_ACQUIRE) == 0 && length == run.length) model_fail("a thread waits for something outside of the model");
        length = run.length;
    }
    served = 0;
    for (int i = 0; i < run.count; i++) {
        if (run.slots[i].stage == ended) pthread_join(run.slots[i].handle, NULL);
        else servers[served++] = run.slots[i];
    }
}

// MARK: Failing

PLAIN void model_print_steps(void) {
    for (size_t i = 0; i < run.length; i++) {
        const model_step *s = &run.steps[i];
        if (i == 0 || run.steps[i - 1].thread != s->thread) fprintf(stderr, "  thread %d\n", s->thread + 1);
        const char *file = s->file ? strrchr(s->file, '/') : NULL;
        fprintf(stderr, "    %zu %s", i, s->name ? s->name : "?");
        if (s->at) fprintf(stderr, " @%u", s->at);
        if (file) fprintf(stderr, "  %s:%u", file + 1, s->line);
        fputc('\n', stderr);
    }
    // Where a thread other than the last one that still could continued is all that a replay needs.
    fprintf(stderr, "schedule: ");
    for (size_t i = 0; i < run.length; i++)
        if (i == 0 || run.steps[i - 1].thread != run.steps[i].thread) fprintf(stderr, "%s%zu:%d", i ? "," : "", i, run.steps[i].thread);
    fprintf(stderr, "\n");
}

PLAIN void model_fail(const char *reason) {
    self = -1;
    fprintf(stderr, "failed: %s: %s\n", title, reason);
    model_print_steps();
    fflush(stderr);
    _exit(1);
}

PLAIN static void on_signal(int number) {
    char text[40];
    snprintf(text, sizeof text, "signal %d", number);
    model_fail(text);
}

PLAIN static void on_death(void) {
    fprintf(stderr, "failed: %s: a sanitizer has found a mistake\n", title);
    model_print_steps();
}

const char *__tsan_default_options(void) { return "halt_on_error=1:report_signal_unsafe=0"; }
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

PLAIN void model_watch_signals(void) {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(on_death);
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], on_signal);
}
