import ReactorHTTPJSON

struct JSONTests {
    private struct User: Codable, Hashable {
        var name: String
        var age = 7
        var friends: [[User]]?
    }

    @Test(.served) func valuesAreSentAndReceived() throws {
        var types: [String?] = []
        try serve { request in
            types.append(request.headers["content-type"])
            return .later(request.json(User.self).map { try .json(User(name: $0.name + "!"), status: .created) })
        }
        for headers in [[:], ["Content-Type": "text/json"]] as [Headers] {
            let body = try RequestBody.json(User(name: "Zoë"))
            let made = client.fetch("http://\(address)/", .post, headers: headers, body: body)
                .then { response -> Promise<User> in
                    types.append(response.headers["content-type"])
                    return try response.json()
                }
            expectEqual(try hang(made, timeout: patience), User(name: "Zoë!"))
        }
        expectEqual(types, ["application/json", "application/json", "text/json", "application/json"])
    }

    @Test(.served, arguments: ["", "{", "[]", #"{"name": 1}"#]) func whatIsNoSuchValueIsAnError(_ text: String) throws {
        try serve { request in
            if request.method == .get { return .now(Response(text)) }
            return .later(request.json(User.self).map { Response($0.name) })
        }
        #expect(throws: DecodingError.self) {
            _ = try hang(client.fetch("http://\(address)/").then { try $0.json(User.self) }, timeout: patience)
        }
        // In the body of a request it is the client's mistake.
        let posted = client.fetch("http://\(address)/", .post, body: .text(text))
        expectEqual(try hang(posted, timeout: patience).status, .badRequest)
        #expect(throws: HTTPError(.badRequest)) {
            _ = try hang(client.fetch("http://\(address)/", .post).then { try $0.json(User.self) }, timeout: patience)
        }
    }

    @Test(
        .inRealTime,
        arguments: [
            (#"{"age": 1}"#, "The member name is missing."),
            (#"{"name": 1, "age": 1}"#, "The member name has the wrong type."),
            (#"{"name": null, "age": 1}"#, "The member name is null or missing."),
            (#"{"name": "a", "age": 1, "friends": [[], [{}]]}"#, "The member friends[1][0].name is missing."),
            ("[]", "The body has the wrong type."), ("[7]", "The body has the wrong type."),
            ("{", "The body is not valid JSON."), ("", "The body is not valid JSON."),
        ])
    func theClientLearnsWhatIsWrong(_ text: String, _ sentence: String) throws {
        let request = try Request(.post, "/", body: .text(text))
        let error = #expect(throws: HTTPError.self) { try hang(request.json(User.self), timeout: patience) }
        expectEqual(error?.detail, sentence)
    }
}
