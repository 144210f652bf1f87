import Glibc

/// Whether a sanitizer watches, under which memory is not what it would be.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// A count that debug builds, which take longer, scale down, and builds with a sanitizer again.
package func scaled(_ count: Int) -> Int {
    let count = isSanitized ? count / 10 : count
    #if DEBUG
    return count / 5
    #else
    return count
    #endif
}
