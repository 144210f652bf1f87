// What the files of this module share. The functions marked so are not seen by a sanitizer.
#define PLAIN __attribute__((disable_sanitizer_instrumentation))

// Each is one step: it returns when the thread may do it.
#define STEP(kind, at, also, argument) model_step_from(kind, at, also, argument, __builtin_return_address(0))
void model_step_from(model_kind kind, const void *at, const void *also, long argument, const void *from);
// The address is another location from now on.
void model_forget(const void *at);
void model_note_look(void *at);
size_t __real_swift_retainCount(void *object);

void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));
