/// Bytes in order of arrival, in the pieces that were sent.
struct ByteQueue {
    private var pieces: [ArraySlice<UInt8>] = []
    private var first = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ bytes: ArraySlice<UInt8>) {
        if bytes.isEmpty { return }
        pieces.append(bytes)
        count += bytes.count
    }

    mutating func takePiece(upTo limit: Int) -> ArraySlice<UInt8> {
        let piece = pieces[first]
        if piece.count > limit {
            pieces[first] = piece.dropFirst(limit)
            count -= limit
            return piece.prefix(limit)
        }
        removeFirstPiece()
        return piece
    }

    /// Moves as many bytes as fit into `buffer`, and returns their number.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var copied = 0
        while copied < buffer.count, count > 0 {
            let piece = takePiece(upTo: buffer.count - copied)
            piece.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[copied...]).copyMemory(from: $0) }
            copied += piece.count
        }
        return copied
    }

    mutating func removeAll() { self = ByteQueue() }

    private mutating func removeFirstPiece() {
        count -= pieces[first].count
        pieces[first] = []
        first += 1
        if first == pieces.count {
            pieces.removeAll(keepingCapacity: true)
            first = 0
        } else if first > 64, first * 2 > pieces.count {
            pieces.removeFirst(first)
            first = 0
        }
    }
}
