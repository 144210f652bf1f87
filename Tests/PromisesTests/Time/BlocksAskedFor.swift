import Glibc

/// Tells whether the calling thread asks malloc(3) for a block of up to a thousand bytes, also for one that it gives back.
///
/// Of each size the block that the thread would get next is filled with a pattern: malloc keeps what a thread has freed for
/// that thread, and gives out first what came last, with all but its first 16 bytes as they were.
struct BlocksAskedFor: ~Copyable {
    private static var pattern: UInt8 { 0xA5 }
    private static var count: Int { 64 }
    // The thread's own: nobody else is given these blocks.
    private let blocks = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: count)

    private static func size(_ index: Int) -> Int { 24 + 16 * index }

    // Plain loops: what is generic might ask for blocks itself.

    /// Begins to look.
    init() {
        var index = 0
        while index < Self.count {
            let size = Self.size(index)
            let block = malloc(size)
            memset(block!, CInt(Self.pattern), size)
            free(block)
            blocks[index] = block
            index += 1
        }
    }

    /// How many sizes have been asked for since.
    func touched() -> Int {
        var touched = 0
        var index = 0
        while index < Self.count {
            let size = Self.size(index)
            let block = malloc(size)!
            var isUntouched = block == blocks[index]
            var offset = 16
            while offset < size {
                if block.load(fromByteOffset: offset, as: UInt8.self) != Self.pattern { isUntouched = false }
                offset += 1
            }
            if !isUntouched { touched += 1 }
            free(block)
            index += 1
        }
        return touched
    }

    deinit { blocks.deallocate() }
}
