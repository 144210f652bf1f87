import Glibc

// What the compiler looks at when all types are right, and before it looks at the flow of the code.

func printToStandardError() {
    fputs("failed", stderr)  // error: reference to var 'stderr' is not concurrency-safe
}

func printLinesAtOnce() {
    setvbuf(stdout, nil, _IOLBF, 0)  // error: reference to var 'stdout' is not concurrency-safe
}
