// Visible in all files of this module.
@_exported import Glibc
@_exported import Promises
@_exported import ReactorIO
@_exported import Reactor
@_exported import ReactorTLS
@_exported import TestSupport
@_exported import Testing
