import Glibc

/// Tells whether something that is done several times, on one thread, asks malloc(3) for a block of up to a thousand bytes
/// each time, also if it gives it back.
///
/// Of each size the block that the thread would get next is filled with a pattern: malloc keeps what a thread has freed for
/// that thread, and gives out first what came last, with all but its first 16 bytes as they were. If that block is still
/// there afterwards, no block of that size was allocated.
struct BlocksAskedFor: ~Copyable {
    private static var pattern: UInt8 { 0xA5 }
    private static var count: Int { 64 }
    // The thread's own: no other thread is given these blocks.
    private let blocks = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: count)
    private let werePassedBy = UnsafeMutablePointer<Bool>.allocate(capacity: count)

    private static func size(_ index: Int) -> Int { 24 + 16 * index }

    /// malloc_usable_size(3), which the module Glibc does not have.
    private let room: @convention(c) (UnsafeMutableRawPointer?) -> Int
    // Called by address: of malloc(3) and free(3) the optimizer knows that nothing reads what is written before a free, and
    // leaves the pattern out.
    private let allocate: @convention(c) (Int) -> UnsafeMutableRawPointer?
    private let deallocate: @convention(c) (UnsafeMutableRawPointer?) -> Void

    init() {
        func symbol(_ name: String) -> UnsafeMutableRawPointer { dlsym(UnsafeMutableRawPointer(bitPattern: 0), name)! }
        room = unsafeBitCast(symbol("malloc_usable_size"), to: type(of: room))
        allocate = unsafeBitCast(symbol("malloc"), to: type(of: allocate))
        deallocate = unsafeBitCast(symbol("free"), to: type(of: deallocate))
        werePassedBy.initialize(repeating: false, count: Self.count)
    }

    // Plain loops: what is generic might ask for blocks itself.

    /// Before it is done.
    func begin() {
        var index = 0
        while index < Self.count {
            let size = Self.size(index)
            var block = allocate(size)
            // Those that are a little larger, and so are kept for the next size.
            var larger: UnsafeMutableRawPointer?
            while room(block) != size {
                block!.storeBytes(of: larger, as: UnsafeMutableRawPointer?.self)
                larger = block
                block = allocate(size)
            }
            while let one = larger {
                larger = one.load(as: UnsafeMutableRawPointer?.self)
                deallocate(one)
            }
            memset(block!, CInt(Self.pattern), size)
            deallocate(block)
            blocks[index] = block
            index += 1
        }
    }

    /// After it was done.
    func end() {
        var index = 0
        while index < Self.count {
            let size = Self.size(index)
            let block = allocate(size)!
            var isUntouched = block == blocks[index]
            var offset = 16
            while offset < size {
                if block.load(fromByteOffset: offset, as: UInt8.self) != Self.pattern { isUntouched = false }
                offset += 1
            }
            if isUntouched { werePassedBy[index] = true }
            deallocate(block)
            index += 1
        }
    }

    /// How many sizes have been asked for each time.
    var sizes: Int { (0..<Self.count).count { !werePassedBy[$0] } }

    deinit {
        blocks.deallocate()
        werePassedBy.deallocate()
    }
}
