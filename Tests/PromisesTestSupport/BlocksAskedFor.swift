import Glibc

/// Tells if an operation that is repeated on one thread allocates a block of up to a thousand bytes each time, even one
/// that it frees again.
///
/// The block that the thread would get next of each size is filled with a pattern: malloc keeps freed blocks per
/// thread, and returns the last one first, with all but its first 16 bytes unchanged. If that block is still there
/// afterwards, no block of that size was allocated.
struct BlocksAskedFor: ~Copyable {
    private static var pattern: UInt8 { 0xA5 }
    private static var count: Int { 64 }
    // The thread's own: no other thread gets these blocks.
    private let blocks = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: count)
    private let werePassedBy = UnsafeMutablePointer<Bool>.allocate(capacity: count)

    private static func size(_ index: Int) -> Int { 24 + 16 * index }

    /// malloc_usable_size(3), which the module Glibc lacks.
    private let room: @convention(c) (UnsafeMutableRawPointer?) -> Int
    // Called by address: the optimizer knows that nothing reads memory after free(3), and would omit the pattern.
    private let allocate: @convention(c) (Int) -> UnsafeMutableRawPointer?
    private let deallocate: @convention(c) (UnsafeMutableRawPointer?) -> Void

    init() {
        func symbol(_ name: String) -> UnsafeMutableRawPointer { dlsym(UnsafeMutableRawPointer(bitPattern: 0), name)! }
        room = unsafeBitCast(symbol("malloc_usable_size"), to: type(of: room))
        allocate = unsafeBitCast(symbol("malloc"), to: type(of: allocate))
        deallocate = unsafeBitCast(symbol("free"), to: type(of: deallocate))
        werePassedBy.initialize(repeating: false, count: Self.count)
    }

    // Plain loops: generic code might allocate.

    /// Called before each repetition.
    func begin() {
        var index = 0
        while index < Self.count {
            let size = Self.size(index)
            var block = allocate(size)
            // Slightly larger blocks, which are kept for the next size.
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

    /// Called after each repetition.
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

    /// The number of sizes allocated in every repetition.
    var sizes: Int { (0..<Self.count).count { !werePassedBy[$0] } }

    deinit {
        blocks.deallocate()
        werePassedBy.deallocate()
    }
}
