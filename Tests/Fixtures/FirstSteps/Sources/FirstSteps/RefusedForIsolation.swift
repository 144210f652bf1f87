import Glibc

// What the compiler looks at when all types are right, and before it looks at the flow of the code.

func printToStandardError() {
    fputs("failed", stderr)  // error: reference to var 'stderr' is not concurrency-safe
}
