import Promises
import ReactorIO
import ReactorTLS

let server = try TLSServer(
    TLSConfiguration(identity: TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key")))
let served = try Listener.bind("127.0.0.1:0").serve(.tls(server)) { connection in connection.write("hello\n") }
try hang(served.asVoid())
