import Reactor

/// The state that the clients on all loops share: the names, and the order of the lines.
actor Hall {
    private let group: LoopGroup
    private let members: LoopLocal<LocalMembers>
    private var names: Set<String> = []
    private var guests = 0

    init(on group: LoopGroup, _ members: LoopLocal<LocalMembers>) {
        self.group = group
        self.members = members
    }

    /// - Returns: the name of a new client.
    func enter() -> String {
        repeat { guests += 1 } while !names.insert("guest\(guests)").inserted
        return "guest\(guests)"
    }

    /// Replaces a client's name.
    ///
    /// - Returns: `false` if another client already has `new`. The client then keeps `old`.
    func rename(_ old: String, to new: String) -> Bool {
        guard names.insert(new).inserted else { return false }
        names.remove(old)
        return true
    }

    /// Frees the name of a client that has left, then tells its room.
    func leave(_ name: String, from room: String) {
        names.remove(name)
        say("* \(name) has left \(room)", in: room)
    }

    /// Sends a line to all clients in `room`. Each loop gets one job, which writes to the connections of that loop. The
    /// actor submits one line after the other, so all loops get the lines in one order.
    func say(_ line: String, in room: String) {
        for loop in group {
            loop.submit { [members] in members.withValue { $0.deliver(line, to: room) } }
        }
    }
}
