import Dispatch
import PromiseKitNames
import Promises
import Reactor
import ReactorDispatch
import ReactorHTTP
import ReactorHTTPJSON
import ReactorIO

#if WITH_TLS
import ReactorTLS
#endif

struct Sum: Codable { var of: [Int], total: Int }

/// Together [CERTIFICATE KEY]: a service that uses every product, and its client.
@main enum Together {
    static func main() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        var (serving, options, scheme) = (ServeOptions(), HTTPClient.Options(), "http")
        #if WITH_TLS
        let files = CommandLine.arguments
        let server = try TLSServer(
            TLSConfiguration(identity: TLSIdentity(certificateChainFile: files[1], privateKeyFile: files[2])))
        var trusting = TLSConfiguration()
        trusting.trustRoots = .file(files[1])
        let tls = try TLSClient(trusting)
        serving = serving.tls(server)
        options.startTLS = { connection, host in connection.startTLS(as: tls, serverName: host) }
        scheme = "https"
        #endif

        let served = listener.serveHTTP(serving: serving) { request in
            request.json([Int].self)
                .map(on: DispatchQueue.global()) { numbers in Sum(of: numbers, total: numbers.reduce(0, +)) }
                .map { try Response.json($0) }
        }
        let client = HTTPClient(options)
        let url = "\(scheme)://localhost:\(listener.localAddress.port)/"
        let sums = try [[1, 2], [3, 4, 5]].map { numbers in
            client.fetch(url, .post, body: try .json(numbers)).then { try $0.json(Sum.self) }
        }
        let results = when(resolved: sums[0], sums[1]).map { try $0.map { try $0.get().total } }
        check(try hang(results, timeout: .seconds(30)) == [3, 12])
        client.close()
        listener.drain(deadline: .seconds(30))
        try hang(served.asVoid())
    }
}

func check(_ condition: Bool) { precondition(condition) }
