import Glibc

/// True under a sanitizer, which changes the use of memory.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// A count that debug builds, which are slower, scale down, and builds with a sanitizer again.
package func scaled(_ count: Int) -> Int {
    let count = isSanitized ? count / 10 : count
    #if DEBUG
    return count / 5
    #else
    return count
    #endif
}
