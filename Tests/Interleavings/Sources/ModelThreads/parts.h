// What the files of this module share. The functions marked so are not seen by a sanitizer.
#ifndef MODEL_PARTS_H
#define MODEL_PARTS_H

#include <stddef.h>

#define PLAIN __attribute__((disable_sanitizer_instrumentation))

size_t references_to(void *object);

void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

#endif
