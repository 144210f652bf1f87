import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorIO

#if TLS
import ReactorTLS

/// The certificate and key of the command line, if it names any.
struct TLSSettings {
    private let server: TLSServer?

    init(_ options: Options) throws {
        guard let certificate = options.certificate, let key = options.key else {
            server = nil
            return
        }
        var configuration = TLSConfiguration(
            identity: try TLSIdentity(certificateChainFile: certificate, privateKeyFile: key))
        configuration.applicationProtocols = ["http/1.1"]
        server = try TLSServer(configuration)
    }

    /// The options, with a TLS handshake if there is a certificate.
    func added(to options: ServeOptions) -> ServeOptions { options.tls(server) }

    /// Reloads the files at each SIGHUP, for connections accepted after it.
    func reloadAtHangup() throws(SystemError) -> EventLoop.Watch? {
        try server?.reload(atSignal: SIGHUP) { error in
            guard let error else { return }
            let message = "http-server: \(error)\n"
            write(STDERR_FILENO, message, message.utf8.count)
        }
    }
}
#else
/// For builds without TLS, which the environment variable `EXAMPLES_TLS` adds.
struct TLSSettings {
    init(_ options: Options) throws {
        if options.certificate != nil {
            throw CommandLineOption.UsageError("--certificate: built without TLS; see the README")
        }
    }

    func added(to options: ServeOptions) -> ServeOptions { options }

    func reloadAtHangup() throws(SystemError) -> EventLoop.Watch? { nil }
}
#endif
