#define _GNU_SOURCE
#include "ModelThreads.h"
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

typedef struct {
    bool has_ended;
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

PLAIN int model_self(void) { return self; }
PLAIN void model_be_quiet(bool quiet) { is_quiet = quiet; }
PLAIN size_t model_count(void) { return run.length; }
PLAIN const model_step *model_steps(void) { return run.steps; }
PLAIN size_t model_new_count(void) { return run.is_redundant ? run.new_count : run.length; }

// MARK: Locations

// Numbers of addresses, in the order of their first use: a run with the same choices has the same numbers.
enum { places = 1 << 16 };
static struct { uintptr_t address; uint32_t number, round; } table[places];
static uint32_t table_round = 1;

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
        run.locations[run.location_count] = (location){0};
    }
    return table[place].number;
}

PLAIN void model_forget(const void *at) {
    size_t place = place_of((uintptr_t)at);
    if (table[place].round == table_round) table[place].number = 0;
}

// MARK: Dependence

PLAIN bool model_changes(uint8_t kind) {
    return kind != model_load && kind != model_yield && kind != model_sleep && kind != model_poll;
}

PLAIN static bool counts(uint8_t kind) { return kind >= model_retain; }

// Whether the order of the two steps matters.
PLAIN bool model_depend(const model_step *one, const model_step *other) {
    if (one->thread == other->thread) return true;
    bool shared = (one->at && (one->at == other->at || one->at == other->also)) || (one->also && (one->also == other->at || one->also == other->also));
    if (!shared) return false;
    if (!counts(one->kind) || !counts(other->kind)) return model_changes(one->kind) || model_changes(other->kind);
    if (one->kind == model_unique || other->kind == model_unique) return one->kind != other->kind;
    return one->kind == model_last || other->kind == model_last;
}

// MARK: Choosing

PLAIN static bool is_enabled(const slot *s) {
    if (s->has_ended) return false;
    const location *at = &run.locations[s->next.at], *also = &run.locations[s->next.also];
    struct pollfd entry = {.fd = (int)s->argument, .events = POLLIN};
    switch (s->next.kind) {
    case model_lock: return at->owner == 0;
    case model_woken: return also->owner == 0 && (at->notified >> (s - run.slots) & 1);
    case model_join: return run.slots[s->argument].has_ended;
    case model_yield: return s->loaded == 0 || run.locations[s->loaded].changes != s->seen;
    case model_sleep: return poll(&entry, 1, 0) != 0;
    default: return true;
    }
}

PLAIN static void note_effect(int thread) {
    slot *s = &run.slots[thread];
    location *at = &run.locations[s->next.at], *also = &run.locations[s->next.also];
    uint8_t kind = s->next.kind, bit = 1 << thread;
    if (kind == model_yield) return;
    if (kind == model_lock || kind == model_unlock) at->owner = kind == model_lock ? thread + 1 : 0;
    if (kind == model_wait || kind == model_woken) also->owner = kind == model_woken ? thread + 1 : 0;
    if (kind == model_wait) {
        at->waiting |= bit;
        also->changes++;
    }
    if (kind == model_woken) at->notified &= ~bit;
    if (kind == model_notify) {
        uint8_t woken = s->argument ? at->waiting : at->waiting & -at->waiting;
        at->notified |= woken;
        at->waiting &= ~woken;
    }
    if (kind != model_load) at->changes++;
    if (kind >= model_load && kind <= model_and) {
        s->loaded = s->next.at;
        s->seen = at->changes;
    }
}

PLAIN static void futex_wait(int *word, long seconds) {
    struct timespec limit = {.tv_sec = seconds};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, seconds ? &limit : NULL, 0, 0);
}

PLAIN static void pass_to(int chosen) {
    int *word = chosen < 0 ? &run.is_over : run.slots[chosen].may_run;
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
    bool do_all_serve = true;
    for (int i = 0; i < run.count; i++) {
        slot *s = &run.slots[i];
        if (s->has_ended) continue;
        // The kind that a release has now.
        if (s->next.kind == model_release || s->next.kind == model_last)
            s->next.kind = __real_swift_retainCount((void *)s->at) <= (size_t)s->argument ? model_last : model_release;
        if (is_enabled(s)) enabled |= 1 << i;
        if (!s->is_of_library || s->next.kind != model_woken) do_all_serve = false;
    }
    if (enabled == 0 && do_all_serve) return -1;
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
        if ((enabled & ~asleep) == 0) {
            if (!run.is_redundant) run.new_count = run.length;
            run.is_redundant = true;
            asleep = 0;
        }
        uint8_t awake = enabled & ~asleep;
        chosen = current >= 0 && (awake >> current & 1) ? current : __builtin_ctz(awake);
    }
    slot *s = &run.slots[chosen];
    s->next.enabled = enabled;
    s->next.asleep = asleep;
    run.steps[run.length++] = s->next;
    run.asleep = 0;
    for (int i = 0; i < run.count && !run.is_redundant; i++) {
        const model_step *next = &run.slots[i].next;
        if (!(asleep >> i & 1) || i == chosen || model_depend(next, &s->next)) continue;
        // Of two counts of an object, the next release may now be the last one.
        if (counts(s->next.kind) && counts(next->kind) && s->next.at == next->at && __real_swift_retainCount((void *)s->at) <= 2) continue;
        run.asleep |= 1 << i;
    }
    note_effect(chosen);
    return chosen;
}

PLAIN void model_step_from(model_kind kind, const void *at, const void *also, long argument, const void *from) {
    if (self < 0) return;
    slot *s = &run.slots[self];
    model_step next = {.thread = self, .kind = kind, .at = number_of((uintptr_t)at), .also = number_of((uintptr_t)also), .other = (uint8_t)argument, .from = from};
    if (kind == model_yield) next.at = s->loaded;
    int owner = run.locations[next.at].owner;
    bool may_wait = kind == model_lock ? owner != 0 : kind == model_unlock ? owner == self + 1 : kind >= model_wait && kind <= model_sleep;
    if (is_quiet && !may_wait && (kind == model_lock || kind == model_unlock)) return;
    s->next = next;
    s->at = (uintptr_t)at;
    s->also = (uintptr_t)also;
    s->argument = argument;
    if (is_quiet && !may_wait) return note_effect(self);
    int error = errno;
    int *may_run = s->may_run;
    int chosen = choose(self);
    if (chosen != self) {
        // The next run may use the slots anew at once.
        pass_to(chosen);
        await_baton(may_run);
    }
    errno = error;
}

// MARK: Threads

// The thread's loop ends in the first round of destructors; in the second one the thread has ended.
static pthread_key_t end_of_thread;
PLAIN static void note_end(void *rounds) {
    if ((uintptr_t)rounds < 2) {
        pthread_setspecific(end_of_thread, (void *)((uintptr_t)rounds + 1));
        return;
    }
    run.slots[self].has_ended = true;
    self = -1;
    pass_to(choose(-1));
}

PLAIN static void *main_of_thread(void *number) {
    slot *s = &run.slots[(uintptr_t)number];
    await_baton(s->may_run);
    self = (int)(uintptr_t)number;
    s->number = &self;
    pthread_setspecific(end_of_thread, (void *)1);
    return s->body(s->context);
}

int __real_pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*body)(void *), void *context);

PLAIN static int add(void *(*body)(void *), void *context, bool is_of_library) {
    if (run.count == model_threads) model_fail("too many threads");
    int number = run.count++;
    run.slots[number] = (slot){.may_run = calloc(1, sizeof(int)), .is_of_library = is_of_library, .body = body, .context = context, .next = {.thread = number, .kind = model_begin}};
    if (__real_pthread_create(&run.slots[number].handle, NULL, main_of_thread, (void *)(uintptr_t)number) != 0) model_fail("no thread");
    return number;
}

PLAIN int model_start_thread(void *(*body)(void *), void *context, bool is_of_library) {
    STEP(model_start, NULL, NULL, 0);
    return add(body, context, is_of_library);
}

PLAIN void model_join_thread(int thread) { STEP(model_join, NULL, NULL, thread); }

static void (*first_body)(void *);
PLAIN static void *run_first(void *context) {
    first_body(context);
    return NULL;
}

PLAIN void model_run(void (*body)(void *), void *context, const uint8_t *choices, size_t count, uint8_t asleep) {
    // Threads of pools that wait for work, from the last run.
    static slot servers[model_threads];
    static int served;
    if (table_round++ == 1) {
        pthread_key_create(&end_of_thread, note_end);
        // On one core the baton is passed in a third of the time.
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    run.count = run.length = run.location_count = run.asleep = run.is_redundant = run.is_over = 0;
    run.locations[0] = (location){0};
    run.choices = choices;
    run.choice_count = count;
    run.asleep_after_choices = asleep;
    first_body = body;
    add(run_first, context, false);
    for (int i = 0; i < served; i++) {
        slot *s = &run.slots[run.count];
        *s = servers[i];
        *s->number = s->next.thread = run.count++;
        s->next.at = number_of(s->at);
        s->next.also = number_of(s->also);
        run.locations[s->next.at].waiting |= 1 << s->next.thread;
    }
    pass_to(choose(-1));
    for (size_t length = 0; __atomic_load_n(&run.is_over, __ATOMIC_ACQUIRE) == 0; length = run.length) {
        futex_wait(&run.is_over, 20);
        if (__atomic_load_n(&run.is_over, __ATOMIC_ACQUIRE) == 0 && length == run.length) model_fail("a thread waits for something outside of the model");
    }
    served = 0;
    for (int i = 0; i < run.count; i++) {
        if (!run.slots[i].has_ended) {
            servers[served++] = run.slots[i];
        } else {
            pthread_join(run.slots[i].handle, NULL);
            free(run.slots[i].may_run);
        }
    }
}

// MARK: Failing

static const char *const names[] = {
    "begins", "starts a thread", "load", "store", "exchange", "compareExchange", "add", "or", "and", "lock", "unlock", "notify", "wait",
    "woken", "joins a thread", "sched_yield", "epoll, waiting", "epoll", "write", "retain", "release", "last release", "isUnique"};

static const char *title = "";
PLAIN void model_set_title(const char *text) { title = text; }

extern const char __executable_start;

// With the places in the program's file, which explore.py replaces by those in the sources.
PLAIN void model_print_steps(void) {
    for (size_t i = 0; i < run.length; i++) {
        const model_step *s = &run.steps[i];
        if (i == 0 || run.steps[i - 1].thread != s->thread) fprintf(stderr, "  thread %d\n", s->thread + 1);
        fprintf(stderr, "    %zu %s @%u", i, names[s->kind], s->at);
        if (s->from) fprintf(stderr, "  0x%zx", (const char *)s->from - &__executable_start - 1);
        fputc('\n', stderr);
    }
    fprintf(stderr, "schedule: ");
    for (size_t i = 0; i < run.length; i++) fputc('0' + run.steps[i].thread, stderr);
    fputc('\n', stderr);
}

PLAIN static void report(const char *reason) {
    self = -1;
    fprintf(stderr, "failed: %s: %s\n", title, reason);
    model_print_steps();
    fflush(stderr);
}

PLAIN void model_fail(const char *reason) {
    report(reason);
    _exit(1);
}

PLAIN static void on_signal(int number) { model_fail(strsignal(number)); }
PLAIN static void on_death(void) { report("a sanitizer has found a mistake"); }

const char *__tsan_default_options(void) { return "halt_on_error=1:report_signal_unsafe=0"; }
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

PLAIN void model_watch_signals(void) {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(on_death);
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], on_signal);
}
