import Glibc
import NotesService
import Promises
import ReactorHTTP
import ReactorIO

/// `json-service [ADDRESS [FOLDER]]`
@main
enum JSONService {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        // Swift reads them from /proc; without it even the program's name is missing.
        if CommandLine.arguments.isEmpty { exit(EX_OSERR) }
        do {
            let service = notesService(Notes(), files: arguments.dropFirst().first ?? ".")
            let listener = try Listener.bind(arguments.first ?? "127.0.0.1:8080")
            let served = listener.serveHTTP(serving: .untilStopped) { request in service.respond(to: request) }
            print("listening on \(listener.localAddress)")
            fflush(nil)
            try hang(served)
        } catch {
            let message = "json-service: \(error)\n"
            write(STDERR_FILENO, message, message.utf8.count)
            exit(EX_OSERR)
        }
    }
}
