// The C library, glibc or musl, under one name, so no other file needs a condition.
#if canImport(Musl)
@_exported import Musl
#else
@_exported import Glibc
#endif
