// The C library under one name, glibc or musl, so that no other file of the sources needs a condition.
#if canImport(Musl)
@_exported import Musl
#else
@_exported import Glibc
#endif
