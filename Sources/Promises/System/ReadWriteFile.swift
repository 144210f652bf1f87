import Reactor
import Synchronization

// Files cannot be waited for by epoll: a pool's thread reads and writes them.

/// How `writeFile` treats what is there already.
public enum FileWriting: Sendable {
    /// It is overwritten, from the beginning. Whoever reads meanwhile sees part of it, and a failure or a cancellation
    /// leaves part of it.
    case replacing
    /// What is written comes after it. (Two that append at the same time may mix, chunk by chunk.)
    case appending
    /// Old or new, never a mixture, also after a failure, a cancellation, or a loss of power: the bytes go to another file in the
    /// same folder, which takes the name when it is on the disk. Until its bytes are complete only the owner can open it. Then it
    /// has the permissions of the old file and, where the process may set it, its group, but not its owner and not its access
    /// control list; where the group cannot be set, the group's permissions shrink to everybody's. A symbolic link is
    /// replaced, not followed.
    case atomically
}

/// Reads the whole of a file on a thread of `pool`.
///
/// Rejected with a `SystemError` that names the path: of `open`, such as `ENOENT`; `EFBIG` if there are more than `limit` bytes;
/// `ENOMEM` if there is no memory for its size; `ENOTSUP` for a FIFO, a socket or a device, which could hold the thread for
/// ever, `EISDIR` for a folder. Rejected with
/// a `DispatchError` if the pool takes no job. Cancelled, it ends before the next chunk of 256 KiB.
/// - Parameter limit: how many bytes there may be; 64 MiB if nothing is said.
public func readFile(
    _ path: String, limit: Int = 64 << 20, on pool: ThreadPool = .shared, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<[UInt8]> { readFile(path, limit: limit, on: pool, calls: FileSyscalls(), file: file, line: line) }

/// The same with system calls that a test has replaced.
package func readFile(
    _ path: String, limit: Int, on pool: ThreadPool, calls: FileSyscalls, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<[UInt8]> {
    onPool(pool, "readFile", file, line) { try FileOperation(path, calls, goOn: $0).read(limit: limit) }
}

/// Writes `bytes` to a file on a thread of `pool`; makes it if there is none.
///
/// Fulfilled when the kernel has all of them, and with `.atomically` when the disk has. Rejected with a `SystemError` that
/// names the path: `ENOSPC` and `EDQUOT` where there is no room, and as for `readFile` for what is no regular file.
/// Cancelled, it ends before the next chunk of 256 KiB.
/// - Parameters:
///   - mode: the permissions of a file that is made, less the process's umask.
///   - manner: how a file is treated that is there already.
public func writeFile(
    _ bytes: [UInt8], to path: String, mode: UInt32 = 0o666, _ manner: FileWriting = .replacing,
    on pool: ThreadPool = .shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    writeFile(bytes, to: path, mode: mode, manner, on: pool, calls: FileSyscalls(), file: file, line: line)
}

/// Writes `text` in UTF-8; see the form with bytes.
public func writeFile(
    _ text: String, to path: String, mode: UInt32 = 0o666, _ manner: FileWriting = .replacing,
    on pool: ThreadPool = .shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    writeFile(Array(text.utf8), to: path, mode: mode, manner, on: pool, file: file, line: line)
}

/// The same with system calls that a test has replaced.
package func writeFile(
    _ bytes: [UInt8], to path: String, mode: UInt32 = 0o666, _ manner: FileWriting, on pool: ThreadPool,
    calls: FileSyscalls, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    onPool(pool, "writeFile", file, line) {
        let work = FileOperation(path, calls, goOn: $0)
        switch manner {
        case .replacing: try work.overwrite(with: bytes, mode: mode)
        case .appending: try work.append(bytes, mode: mode)
        case .atomically: try work.replaceAtomically(with: bytes, mode: mode)
        }
    }
}

/// Runs `body` on the pool, with what tells it that nobody wants it any more.
private func onPool<Value: Sendable>(
    _ pool: ThreadPool, _ operation: StaticString, _ file: StaticString, _ line: UInt,
    _ body: @escaping @Sendable (_ goOn: @escaping @Sendable () throws -> Void) throws -> Value
) -> Promise<Value> {
    let interruption = Interruption()
    let core = PromiseCore.void.derive(
        MapOn<Void, Value> { try body { try interruption.check() } }, on: pool, operation, Promise<Value>.self, file,
        line)
    interruption.watch(core)
    return Promise(core)
}

/// Lets a job look whether its promise has been cancelled.
private final class Interruption: Sendable {
    // The address of the promise's core, 0 before that is known. Not owned: who runs the job holds the core, and nobody
    // else looks.
    private let address = Atomic<UInt>(0)

    func watch(_ core: PromiseCore) {
        // An exchange and not a store: see "The life of a promise" in docs/architecture.md.
        _ = address.exchange(
            UInt(bitPattern: Unmanaged.passUnretained(core).toOpaque()), ordering: .acquiringAndReleasing)
    }

    func check() throws(PromiseError) {
        guard let pointer = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)) else { return }
        let isOpen = Unmanaged<PromiseCore>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.isOpen }
        if !isOpen { throw .cancelled }
    }
}
