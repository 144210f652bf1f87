// So that a test of Promises needs one import: `@testable import PromisesTestSupport`.

@_exported import Promises
@_exported import Reactor
@_exported import TestSupport
@_exported import Testing
