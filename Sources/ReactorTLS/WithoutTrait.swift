// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
#if !TLS
import Promises
import Reactor
import ReactorIO

// Stand-ins for importers without the trait, so that the compiler says how to get it instead of "cannot find". None can
// be called.

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public struct TLSClient: Sendable {
    public init(_ configuration: TLSConfiguration = TLSConfiguration()) throws {}
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public struct TLSServer: Sendable {
    public init(_ configuration: TLSConfiguration) throws {}
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public struct TLSConfiguration: Sendable {
    public init(identity: TLSIdentity? = nil) {}
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public struct TLSIdentity: Sendable {
    public init(certificateChainFile: String, privateKeyFile: String, password: String? = nil) throws {}
    public init(
        certificateChain: some Sequence<UInt8>, privateKey: some Sequence<UInt8>, password: String? = nil
    ) throws {}
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public struct TLSError: Error {}

private func cannotBeCalled() -> Never { fatalError("ReactorTLS is built without its trait TLS") }

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
extension ServeOptions {
    public func tls(_ server: TLSServer?) -> ServeOptions { cannotBeCalled() }
    public static func tls(_ server: TLSServer?) -> ServeOptions { cannotBeCalled() }
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
extension Connection {
    public func startTLS(as client: TLSClient, serverName: String?) -> Promise<Connection> { cannotBeCalled() }
    public func startTLS(as server: TLSServer) -> Promise<Connection> { cannotBeCalled() }
}

@available(*, unavailable, message: "turn TLS on in your manifest: .package(url: …, from: …, traits: [\"TLS\"])")
public func connect(
    to endpoint: some Endpoint, tls client: TLSClient?, serverName: String? = nil, timeout: Duration? = nil
) -> Promise<Connection> { cannotBeCalled() }
#endif
