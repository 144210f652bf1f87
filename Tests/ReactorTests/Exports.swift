// Visible in all files of this module.
@_exported import Glibc
@_exported import Reactor
@_exported import TestSupport
