import Promises
import Reactor

/// A connection in the console: counts and names, but no bytes.
package struct ConnectionFacts: Sendable {
    package enum Wait: UInt8, Sendable {
        case handler
        case read, write
        case readAndWrite
        /// The peer sends faster than `readRate`.
        case pause
        case close
        /// The connection is idle in a pool.
        case pool
        /// The listener or the program holds the connection, which has no descriptor.
        case nothing
    }

    package let peer: SocketAddress?
    package let descriptor: CInt
    /// The console's second when it was accepted: zero if before the console, `nil` if not accepted.
    package let since: UInt32?
    /// The milliseconds since data was received or sent; `nil` if the kernel does not report it.
    package let quiet: Int?
    package let received, sent, queued: Int
    package let wait: Wait
    /// True when the peer has ended its side while a handler works.
    package let hasEnded: Bool
    /// The source line of the read, if promises are traced.
    package let callSite: CallSite?
    package let filter: String?
    /// The listener that accepted it, identified as in `InspectedFacts.identity`.
    package let listener: ObjectIdentifier?
}

/// Lists the connections of a loop, a few at a time, on the loop's thread.
package final class ConnectionWalk {
    package private(set) var facts: [ConnectionFacts] = []
    /// The connections with a waiting read, by its promise's address.
    private var readers: [UnsafeMutableRawPointer: Connection] = [:]
    private let loop: EventLoop
    private let trackers: [ConnectionTracker]
    private var tracker = 0
    private var place = 0
    private var seen = Set<ObjectIdentifier>()
    private var filters: [ObjectIdentifier: String] = [:]

    package init(on loop: EventLoop) {
        self.loop = loop
        trackers = InspectedObjects.all(ConnectionTracker.self, ofLoop: loop.serial)
        // Growing these later would take milliseconds.
        let most = loop.metrics(countingJobs: 0).descriptors
        facts.reserveCapacity(most)
        readers.reserveCapacity(most)
        seen.reserveCapacity(most)
    }

    package func reader(_ address: UnsafeMutableRawPointer) -> String? {
        guard let connection = readers[address], connection.reader.waiting?.pointer == address else { return nil }
        return "\(connection)"
    }

    /// - Returns: false at the end.
    package func advance(atMost count: Int) -> Bool {
        for _ in 0..<count {
            if tracker < trackers.count {
                advanceInTracker()
            } else if place < loop.descriptorLimit {
                if let connection = loop.watched(place)?.handler as? Connection { add(connection, nil, nil) }
                place += 1
            } else {
                return false
            }
        }
        return true
    }

    private func advanceInTracker() {
        let open = trackers[tracker].connections
        if place < open.places {
            if let entry = open.entry(place) {
                add(entry.connection, entry.since, ObjectIdentifier(trackers[tracker].server.counts))
            }
            place += 1
        } else {
            place = 0
            tracker += 1
        }
    }

    private func add(_ connection: Connection, _ since: UInt32?, _ listener: ObjectIdentifier?) {
        guard seen.insert(ObjectIdentifier(connection)).inserted else { return }
        let reader = connection.reader.waiting
        if let reader { readers[reader.pointer] = connection }
        let isTCP = connection.kind.contains(.tcp) && connection.lifecycle.hasDescriptor
        let quiet = isTCP ? loop.kernel.getQuietTime(connection.fd) : -1
        let wait = connection.whatItWaitsFor
        let filter = connection.cold?.filter.map { type(of: $0.filter) }
        facts.append(
            ConnectionFacts(
                peer: connection.peerAddress, descriptor: connection.fd, since: since, quiet: quiet < 0 ? nil : quiet,
                received: connection.bytesReceived, sent: connection.bytesSent, queued: connection.queuedBytes,
                // 0x2000 is POLLRDHUP, which the Glibc module lacks.
                wait: wait, hasEnded: wait == .handler && loop.kernel.poll(connection.fd, 0x2000) > 0,
                callSite: reader?.borrow { $0.handlerCallSite },
                filter: filter.map(name), listener: listener))
    }

    private func name(_ filter: any ConnectionFilter.Type) -> String {
        if let known = filters[ObjectIdentifier(filter)] { return known }
        let name = "\(filter)"
        filters[ObjectIdentifier(filter)] = name
        return name
    }
}

extension Connection {
    fileprivate var whatItWaitsFor: ConnectionFacts.Wait {
        if !lifecycle.hasDescriptor { return .nothing }
        if !lifecycle.isOpenOrFailed { return .close }
        if cold?.attachment is ParkedConnection { return .pool }
        if cold?.rare?.readRateLimiter?.isPaused == true { return .pause }
        return switch (reader.isWaiting, writer.isQueued) {
        case (true, true): .readAndWrite
        case (true, false): .read
        case (false, true): .write
        case (false, false): .handler
        }
    }
}

extension ConnectionTracker: Inspected {
    /// The listener's facts include them.
    package var facts: [InspectedFacts] { [] }
}

extension Listener: Inspected {
    package var facts: [InspectedFacts] {
        var facts = InspectedFacts(
            .listener, localAddresses.map(\.description).joined(separator: ", "), limit: server?.options.maxConnections,
            inUse: activeConnections, waiting: waiting.count)
        facts.callSite = server?.callSite
        facts.identity = ObjectIdentifier(state.counts)
        facts.others = [
            ("lingering", lingeringConnections), ("refused", refusedConnections), ("evicted", evictedConnections),
        ]
        facts.state = condition
        return [facts]
    }

    private var condition: String? {
        if isDraining {
            let left = state.deadline.map { ", \(max(loop.now.duration(to: $0).components.seconds, 0)) s left" }
            return "draining" + (left ?? "")
        }
        if state.isClosed { return "closed" }
        if acceptor.isPaused { return "paused: the kernel refuses clients" }
        return takesClients ? nil : server == nil ? "not serving" : "full"
    }
}
