// A test of ReactorIO needs this import and that of PromisesTestSupport, both `@testable`.

@_exported import ReactorIO
