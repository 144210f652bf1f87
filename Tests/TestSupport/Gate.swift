import Glibc

/// Blocks threads until it is opened, and lets one pass for each opening.
// @unchecked Sendable: a semaphore may be used by any thread, and its address never changes.
package final class Gate: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    package init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    package func open(_ times: Int = 1) {
        for _ in 0..<times { sem_post(semaphore) }
    }

    package func wait(_ times: Int = 1) {
        for _ in 0..<times {
            while sem_wait(semaphore) != 0 {}
        }
    }
}
