@testable import PromisesTestSupport

/// The bytes allocated by malloc(3) and not freed, in all arenas; `nil` if the allocator does not tell. Memory that a
/// thread has freed and malloc caches for it, some hundred KiB, counts until the thread ends.
func heapInUse() -> Int? {
    typealias Info = @convention(c) (CInt, UnsafeMutablePointer<FILE>) -> CInt
    // mallinfo2(3) would be simpler, but returns a struct, which a symbol that is looked up by name cannot.
    guard !isSanitized, let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "malloc_info") else { return nil }
    var text: UnsafeMutablePointer<CChar>?
    var count = 0
    guard let file = open_memstream(&text, &count) else { return nil }
    let result = unsafeBitCast(symbol, to: Info.self)(0, file)
    fclose(file)
    defer { free(text) }
    guard result == 0, let text else { return nil }
    // The sums over all arenas come last.
    let lines = String(cString: text).split(separator: "\n")
    func sum(_ tag: String) -> Int {
        guard let line = lines.last(where: { $0.hasPrefix(tag) }) else { return 0 }
        return line.split(separator: "\"").last { Int($0) != nil }.flatMap { Int($0) } ?? 0
    }
    return sum("<system type=\"current\"") + sum("<total type=\"mmap\"") - sum("<total type=\"fast\"")
        - sum("<total type=\"rest\"")
}
