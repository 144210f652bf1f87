import Promises
import Reactor
import Synchronization

// epoll cannot wait for files, so the threads of a pool read and write them.

/// The treatment of an existing file by `writeFile`.
public enum FileWriting: Sendable {
    /// Overwrites the file from its beginning. A concurrent reader may see only a part of the new content, and a
    /// failure or a cancellation leaves only a part.
    case replacing
    /// Appends the bytes. (The chunks of two concurrent appends may interleave.)
    case appending
    /// Replaces the file as a whole: it has either its old or its new content, even after a failure, a cancellation, or
    /// a power loss.
    ///
    /// The bytes go to another file in the same folder. Once on the disk, that file takes the name. Until complete,
    /// only its owner can open it. Then it gets the old permissions and, if the process may set it, the old group, but
    /// neither the old owner nor the access control list. If the group cannot be set, it gets no permission that others
    /// lack. A symbolic link is replaced, not followed.
    case atomically
}

/// Reads a whole file on a thread of `pool`.
///
/// ```swift
/// readFile("/etc/hostname").done { bytes in print(String(decoding: bytes, as: UTF8.self)) }.cauterize()
/// ```
///
/// A cancelled read ends before the next chunk of 256 KiB. The promise is rejected with a `SystemError`, which names
/// the path, or a `DispatchError`:
/// - the error from `open`, such as `ENOENT`;
/// - `EFBIG` if the file has more than `limit` bytes;
/// - `ENOMEM` if the file does not fit into memory;
/// - `ENOTSUP` for a FIFO, a socket or a device, which could block the thread for ever;
/// - `EISDIR` for a folder;
/// - `DispatchError` if the pool accepts no job.
public func readFile(
    _ path: String, limit: Int = 64 << 20, on pool: ThreadPool = .shared, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<[UInt8]> { readFile(path, limit: limit, on: pool, calls: FileSyscalls(), file: file, line: line) }

/// Works like the public `readFile`, with system calls that a test can replace.
package func readFile(
    _ path: String, limit: Int, on pool: ThreadPool, calls: FileSyscalls, file: StaticString = #fileID,
    line: UInt = #line
) -> Promise<[UInt8]> {
    onPool(pool, "readFile", file, line) { try FileOperation(path, calls, checkCancelled: $0).read(limit: limit) }
}

/// Writes `bytes` to a file on a thread of `pool`, and creates the file if necessary.
///
/// ```swift
/// writeFile(text.utf8, to: "settings", .atomically).catch { error in print(error) }
/// ```
///
/// Fulfilled when the kernel has accepted all bytes, and with `.atomically` when the disk has. A cancelled write ends
/// before the next chunk of 256 KiB. Rejected with a `SystemError`, which names the path: `ENOSPC` or `EDQUOT` for lack
/// of room, and the errors of `readFile` for anything but a regular file. A new file has the permissions `mode`, minus
/// the process's umask.
public func writeFile(
    _ bytes: some Collection<UInt8>, to path: String, mode: UInt32 = 0o666, _ manner: FileWriting = .replacing,
    on pool: ThreadPool = .shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    writeFile(Array(bytes), to: path, mode: mode, manner, on: pool, calls: FileSyscalls(), file: file, line: line)
}

/// Works like the public `writeFile`, with system calls that a test can replace.
package func writeFile(
    _ bytes: [UInt8], to path: String, mode: UInt32 = 0o666, _ manner: FileWriting, on pool: ThreadPool,
    calls: FileSyscalls, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    onPool(pool, "writeFile", file, line) {
        let work = FileOperation(path, calls, checkCancelled: $0)
        switch manner {
        case .replacing: try work.overwrite(with: bytes, mode: mode)
        case .appending: try work.append(bytes, mode: mode)
        case .atomically: try work.replaceAtomically(with: bytes, mode: mode)
        }
    }
}

/// Runs `body` on the pool, and passes it a function that throws once nobody needs the result.
private func onPool<Value: Sendable>(
    _ pool: ThreadPool, _ operation: StaticString, _ file: StaticString, _ line: UInt,
    _ body: @escaping @Sendable (_ checkCancelled: @escaping @Sendable () throws -> Void) throws -> Value
) -> Promise<Value> {
    let interruption = Interruption()
    let promise = Promise.value.map(operation, on: pool, { try body { try interruption.check() } }, file, line)
    interruption.watch(promise.core)
    return promise
}

private final class Interruption: Sendable {
    // The address of the promise's core; 0 until it is known. Unowned: the thread that runs the job retains the core,
    // and only that thread reads the address.
    private let address = Atomic<UInt>(0)

    func watch(_ core: PromiseCore) {
        // Exchanges instead of storing: see docs/explanation/architecture.md.
        _ = address.exchange(core.address, ordering: .acquiringAndReleasing)
    }

    func check() throws(PromiseError) {
        guard let core = CoreRef(addressOrZero: address.load(ordering: .acquiring)) else { return }
        if core.borrow({ $0.isDecidedByCancellation }) { throw .cancelled }
    }
}
