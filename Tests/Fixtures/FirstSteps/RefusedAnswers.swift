import Promises
import Reactor
import ReactorHTTP
import ReactorIO

// Handlers of `serveHTTP` with two kinds of results.

func content(_ path: String) -> Promise<Response> { .value(Response(path)) }

func undecided(_ listener: Listener) {
    listener.serveHTTP { request -> Answer in
        if request.path == "/" { return Response("home") }  // error: cannot convert value of type 'Response' to closure
        return content(request.path)
    }
}

func withoutAType(_ listener: Listener) {
    listener.serveHTTP { request in
        if request.path == "/" { return Response("home") }
        return content(request.path)  // error: cannot convert value of type 'Promise<Response>' to closure result
    }
}

func conditional(_ listener: Listener) {
    listener.serveHTTP { request in
        request.path == "/" ? Response("home") : content(request.path)  // error: result values in '? :' expression have
    }
}

func switched(_ listener: Listener) {
    listener.serveHTTP { request in  // error: type '()' cannot conform to 'ResponseConvertible'
        switch request.path {
        case "/": Response("home")
        default: content(request.path)
        }
    }
}
