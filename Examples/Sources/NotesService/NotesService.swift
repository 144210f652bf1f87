import Promises
import ReactorHTTP
import ReactorHTTPJSON

/// - Parameter folder: the folder of uploaded files.
package func notesService(_ notes: Notes, files folder: String) -> Router {
    let service = Router()

    // Is around every answer below the prefix, 404 and errors included.
    let group = service.group("/notes") { request, next in
        if request.body.length != 0, !request.headers.has("content-type", listing: "application/json") {
            throw HTTPError(Status(415), detail: "Send application/json.")
        }
        return next(request).map { response in
            var response = response
            response.headers["Cache-Control"] = "no-store"
            return response
        }
    }
    group.on(.get, "") { request in
        try Response.json(notes.all(containing: request.queryParameters["word"] ?? ""))
    }
    group.on(.post, "") { request in
        request.json(Draft.self).map { draft in
            let note = try notes.add(draft)
            return try Response.json(note, status: .created, headers: ["Location": "/notes/\(note.id)"])
        }
    }
    group.on(.get, "/{id}") { request in try Response.json(notes.note(request.pathParameters.value("id"))) }
    group.on(.delete, "/{id}") { request in
        try notes.remove(request.pathParameters.value("id"))
        return Response(.noContent)
    }

    service.on(.put, "/files/{name}") { request in
        let name = request.pathParameters["name"] ?? ""
        // The name is not hidden and contains no path separator.
        guard name.utf8.allSatisfy({ $0 != UInt8(ascii: "/") && $0 != 0 }), name.utf8.first != UInt8(ascii: ".") else {
            throw HTTPError(.badRequest, detail: "A file cannot have this name.")
        }
        request.body.limit = 1 << 30
        return request.body.save(to: "\(folder)/\(name)").map { count in
            try Response.json(["bytes": count], status: .created)
        }
    }
    let files = StaticFiles(folder)
    service.on(.get, "/files/{path...}") { request in
        files.response(to: request, path: request.pathParameters["path"] ?? "")
    }
    return service
}
