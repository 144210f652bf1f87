import Promises
import Reactor
import ReactorIO
import ReactorTLS

/// OnlyTLS CERTIFICATE KEY: self-signed, for localhost.
@main enum OnlyTLS {
    static func main() throws {
        let files = CommandLine.arguments
        let server = try TLSServer(
            TLSConfiguration(identity: TLSIdentity(certificateChainFile: files[1], privateKeyFile: files[2])))
        var trusting = TLSConfiguration()
        trusting.trustRoots = .file(files[1])
        let client = try TLSClient(trusting)

        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serve(.tls(server)) { connection in
            connection.forEachLine { line in connection.write("\(line)!\n") }
        }
        let answer = connect(to: listener.localAddress, tls: client, serverName: "localhost").then { connection in
            connection.write("hello\n").then { connection.readLine() }.ensure { connection.close() }
        }
        check(try hang(answer, timeout: .seconds(30)) == "hello!")
        listener.drain(deadline: .seconds(30))
        try hang(served.asVoid())
    }
}

func check(_ condition: Bool) { precondition(condition) }
