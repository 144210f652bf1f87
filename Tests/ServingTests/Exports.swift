// Visible in all files of this module.
@_exported import Glibc
