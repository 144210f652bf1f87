import Promises
import ReactorHTTP
import ReactorHTTPJSON
import ReactorIO

struct User: Codable, Equatable { var name: String }

@main enum OnlyJSON {
    static func main() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        let served = listener.serveHTTP { request in
            request.json(User.self).map { try Response.json(User(name: $0.name + "!"), status: .created) }
        }
        let client = HTTPClient()
        let user = client.fetch("http://\(listener.localAddress)/", .post, body: try .json(User(name: "me")))
            .then { try $0.json(User.self) }
        check(try hang(user, timeout: .seconds(30)) == User(name: "me!"))
        client.close()
        listener.drain(deadline: .seconds(30))
        try hang(served.asVoid())
    }
}

func check(_ condition: Bool) { precondition(condition) }
