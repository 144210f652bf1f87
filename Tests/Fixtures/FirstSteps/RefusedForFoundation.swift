import Foundation
@preconcurrency import Glibc

// Foundation, which is imported first, has the names of Glibc, too.

func printToStandardErrorToo() {
    fputs("failed", stderr)  // error: reference to var 'stderr' is not concurrency-safe
}
