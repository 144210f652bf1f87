import Glibc

// The capabilities of the machine and the limits of the process. A test that needs more is skipped, by `.enabled(if:)`
// with a comment that names the missing part.

/// The number in a variable of the environment.
package func environmentNumber(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

/// True if the IPv6 loopback address can be bound. A kernel or a container may lack it.
package let hasIPv6 = { () -> Bool in
    let fd = socket(AF_INET6, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard fd >= 0 else { return false }
    defer { close(fd) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_addr.__in6_u.__u6_addr8.15 = 1
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
        }
    }
}()

/// The loopback addresses that can be bound, with a port of the kernel's choice, for tests of each.
package let loopbacks = hasIPv6 ? ["127.0.0.1:0", "[::1]:0"] : ["127.0.0.1:0"]

/// Addresses of documentation (RFC 5737, RFC 3849), which no machine has.
package let foreignAddresses = hasIPv6 ? ["198.51.100.1:0", "[2001:db8::1]:0"] : ["198.51.100.1:0"]

/// The number of descriptors that this process may have: the hard limit, but at most 16,384. The soft limit is raised
/// to that when a test first reads it.
package let descriptorLimit = { () -> Int in
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    getrlimit(resource, &limit)
    limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, 16384))
    setrlimit(resource, &limit)
    return Int(clamping: limit.rlim_cur)
}()

/// True if the hard limit of descriptors is at least `count`. The limit of the process stays unchanged.
package func mayHaveDescriptors(_ count: Int) -> Bool {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max >= rlim_t(count)
}
