import Promises
import ReactorHTTP
import ReactorIO

@main enum OnlyHTTP {
    static func main() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serveHTTP { request in
            switch request.path {
            case "/": Response("Hello, world!\n")
            default: Response("Not found\n", status: .notFound)
            }
        }
        let client = HTTPClient()
        for (path, status) in [("/", Status.ok), ("/none", .notFound)] {
            let page = client.fetch("http://\(listener.localAddress)\(path)").map { $0.status }
            check(try hang(page, timeout: .seconds(30)) == status)
        }
        client.close()
        listener.drain(deadline: .seconds(30))
        try hang(served.asVoid())
    }
}

func check(_ condition: Bool) { precondition(condition) }
