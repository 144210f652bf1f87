import CLinux
import ReactorLibc

/// The buffers for one recvmmsg(2).
package final class DatagramBatch {
    package static var capacity: Int { 32 }

    // Owned: allocated in init, freed in deinit, never moved. The headers point to the vectors and addresses; the
    // vectors point to the bytes. `receive` lets the kernel write all of them; they are read until the next `receive`.
    private let headers = UnsafeMutablePointer<clinux_mmsghdr>.allocate(capacity: DatagramBatch.capacity)
    private let vectors = UnsafeMutablePointer<iovec>.allocate(capacity: DatagramBatch.capacity)
    private let addresses = UnsafeMutablePointer<sockaddr_storage>.allocate(capacity: DatagramBatch.capacity)
    private let bytes: UnsafeMutableRawBufferPointer
    private let packetSize: Int
    /// The number of headers and addresses, from the first on, to prepare before the next `receive`.
    private var used = DatagramBatch.capacity

    package init(packetSize: Int) {
        self.packetSize = packetSize
        bytes = .allocate(byteCount: packetSize * Self.capacity, alignment: 64)
        addresses.initialize(repeating: sockaddr_storage(), count: Self.capacity)
        for index in 0..<Self.capacity {
            (vectors + index).initialize(
                to: iovec(iov_base: bytes.baseAddress! + index * packetSize, iov_len: packetSize))
            (headers + index).initialize(to: clinux_mmsghdr())
        }
    }

    deinit {
        headers.deallocate()
        vectors.deallocate()
        addresses.deallocate()
        bytes.deallocate()
    }

    /// Returns the number of datagrams, or `-errno`.
    package func receive(_ fd: CInt, upTo limit: Int, _ kernel: CountingSyscalls) -> Int {
        for index in 0..<used {
            var header = msghdr()
            header.msg_name = UnsafeMutableRawPointer(addresses + index)
            header.msg_namelen = socklen_t(MemoryLayout<sockaddr_storage>.size)
            header.msg_iov = vectors + index
            header.msg_iovlen = 1
            headers[index] = clinux_mmsghdr(header: header, count: 0)
            addresses[index].ss_family = sa_family_t(AF_UNSPEC)
        }
        let count = kernel.receiveMessages(fd, headers, min(limit, Self.capacity))
        used = max(count, 0)
        return count
    }

    /// A received datagram's bytes, until the next `receive`.
    package func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        let start = index * packetSize
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + min(Int(headers[index].count), packetSize)])
    }

    package func address(_ index: Int) -> SocketAddress? { SocketAddress(addresses[index]) }

    package func isTruncated(_ index: Int) -> Bool {
        headers[index].header.msg_flags & CInt(MSG_TRUNC) != 0
    }

    // MARK: Sending

    /// Returns 1 or `-errno`.
    package static func send(
        _ bytes: UnsafeRawBufferPointer, to address: SocketAddress?, _ fd: CInt, _ kernel: CountingSyscalls
    ) -> Int {
        // The kernel only reads through these pointers, although sendmmsg(2) declares them mutable.
        var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            func send(_ name: UnsafePointer<sockaddr>?, _ length: socklen_t) -> Int {
                var message = clinux_mmsghdr()
                message.header.msg_iov = vector
                message.header.msg_iovlen = 1
                message.header.msg_name = UnsafeMutableRawPointer(mutating: name)
                message.header.msg_namelen = length
                return kernel.sendMessages(fd, &message, 1)
            }
            return address.map { $0.withSocketAddress(send) } ?? send(nil, 0)
        }
    }

    /// Sends as many of `count` datagrams as one call takes. Returns the number accepted, or `-errno` if the kernel
    /// refuses the first.
    // Not generic: it would not be specialised for the module that calls it.
    package static func send(
        _ count: Int, _ fd: CInt, _ kernel: CountingSyscalls,
        _ packet: (Int) -> (bytes: [UInt8], address: SocketAddress?)
    ) -> Int {
        if count == 1 {
            let (bytes, address) = packet(0)
            return bytes.withUnsafeBytes { send($0, to: address, fd, kernel) }
        }
        let packets = (0..<min(count, capacity)).map(packet)
        // Joined, so that one pointer reaches all datagrams.
        var joined: [UInt8] = []
        joined.reserveCapacity(packets.reduce(0) { $0 + $1.bytes.count })
        for packet in packets { joined += packet.bytes }
        var names = packets.map { packet -> (storage: sockaddr_storage, length: socklen_t) in
            var storage = sockaddr_storage()
            let length = packet.address?.store(in: &storage) ?? 0
            return (storage, length)
        }
        return joined.withUnsafeMutableBytes { bytes in
            names.withUnsafeMutableBufferPointer { names in
                withUnsafeTemporaryAllocation(of: iovec.self, capacity: packets.count) { vectors in
                    withUnsafeTemporaryAllocation(of: clinux_mmsghdr.self, capacity: packets.count) { messages in
                        var start = 0
                        for (index, packet) in packets.enumerated() {
                            let base = bytes.baseAddress.map { $0 + start }
                            vectors.initializeElement(
                                at: index, to: iovec(iov_base: base, iov_len: packet.bytes.count))
                            start += packet.bytes.count
                            var message = clinux_mmsghdr()
                            message.header.msg_iov = vectors.baseAddress! + index
                            message.header.msg_iovlen = 1
                            if names[index].length > 0 {
                                // Points to the tuple's first member, which has the tuple's address.
                                message.header.msg_name = UnsafeMutableRawPointer(names.baseAddress! + index)
                                message.header.msg_namelen = names[index].length
                            }
                            messages.initializeElement(at: index, to: message)
                        }
                        return kernel.sendMessages(fd, messages.baseAddress!, packets.count)
                    }
                }
            }
        }
    }
}
