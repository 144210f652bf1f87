import Promises
import ReactorHTTP

/// A note as sent to clients.
package struct Note: Codable, Hashable {
    package var id: Int
    package var text: String
}

/// A note as received from clients.
struct Draft: Codable {
    var text: String
    /// The lifetime of the note in seconds.
    var seconds: Double?
}

package final class Notes {
    private var notes: [Int: Note] = [:]
    private var lastID = 0

    package init() {}

    func all(containing word: String) -> [Note] {
        notes.values.filter { word.isEmpty || $0.text.contains(word) }.sorted { $0.id < $1.id }
    }

    func note(_ id: Int) throws(HTTPError) -> Note {
        guard let note = notes[id] else { throw HTTPError(.notFound, detail: "There is no note \(id).") }
        return note
    }

    func add(_ draft: Draft) throws(HTTPError) -> Note {
        if draft.text.isEmpty { throw HTTPError(Status(422), detail: "A note needs a text.") }
        lastID += 1
        let note = Note(id: lastID, text: draft.text)
        notes[note.id] = note
        if let seconds = draft.seconds { after(.seconds(seconds)).done { self.notes[note.id] = nil } }
        return note
    }

    func remove(_ id: Int) throws(HTTPError) { notes[try note(id).id] = nil }
}
