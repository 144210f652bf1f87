import ReactorHTTP

/// The program of docs/guides/patterns.md.
struct CookiesAndSessionsTests {
    @Test(
        arguments: [
            ([], [:]), (["a=1"], ["a": "1"]), (["a=1; b=two=2", "c=3"], ["a": "1", "b": "two=2", "c": "3"]),
            (["a=1;a=2;\tb = \"x\" ;;=;c"], ["a": "1", "b": "\"x\"", "": ""]),
        ] as [([String], [String: String])])
    func theCookiesOfARequest(_ fields: [String], _ cookies: [String: String]) throws {
        var headers = Headers()
        for field in fields { headers.append("Cookie", field) }
        expectEqual(try Request(.get, "/", headers: headers).cookies, cookies)
    }

    @Test func aValueCannotAddAttributes() throws {
        var response = Response("")
        try response.setCookie("__Host-a", "b", for: .seconds(60))
        expectEqual(
            response.headers.all("set-cookie"),
            ["__Host-a=b; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax"])
        for value in ["b; Domain=example.org", "b\r\n", "b c", "\"b\"", "b,c", "b\\", "\u{E4}"] {
            #expect(throws: PromiseError.self) { try response.setCookie("a", value, for: .zero) }
        }
        expectEqual(response.headers.all("set-cookie").count, 1)
    }

    @Test func aSessionLastsWhileItIsUsed() throws {
        try withVirtualTime {
            let service = accounts(Sessions(endingAfter: .seconds(3600)))
            func send(_ method: ReactorHTTP.Method, _ path: String, _ cookie: String?, _ text: String = "") throws
                -> Response
            {
                let headers: Headers = cookie.map { ["Cookie": "theme=dark; \($0)"] } ?? [:]
                return try hang(service.respond(to: Request(method, path, headers: headers, body: .text(text))).promise)
            }
            func login(_ name: String) throws -> String {
                let field = try #require(send(.post, "/login", nil, name).headers["set-cookie"])
                return String(field.prefix { $0 != ";" })
            }
            let (ann, ben) = (try login("Ann"), try login("Ben"))
            expect(ann != ben && ann.hasPrefix("__Host-session=") && ann.utf8.count > 30)
            for _ in 1...3 {
                hang(after(.seconds(3000)))
                let greeting = try hang(#require(send(.get, "/", ann).body).text())
                expectEqual(greeting, "Hello again, Ann\n")
            }
            expectEqual(try send(.get, "/", ben).status.code, 401)  // silent for too long
            expectEqual(try send(.get, "/", nil).status.code, 401)
            expectEqual(try send(.get, "/", ann + "x").status.code, 401)
            expect(try send(.post, "/logout", ann).headers["set-cookie"]?.contains("Max-Age=0") == true)
            expectEqual(try send(.get, "/", ann).status.code, 401)
        }
    }
}
