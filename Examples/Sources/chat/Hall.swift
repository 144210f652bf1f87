import Reactor

/// What all clients share, on whichever loop they are: the names, and the order of what is said.
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

    /// - Returns: whether nobody else has the new name.
    func rename(_ old: String, to new: String) -> Bool {
        guard names.insert(new).inserted else { return false }
        names.remove(old)
        return true
    }

    /// Says that a client has left. By then its name is free.
    func leave(_ name: String, from room: String) {
        names.remove(name)
        say("* \(name) has left \(room)", in: room)
    }

    /// Sends a line to everybody in `room`: one job for each loop, which writes to its own connections. All loops get the
    /// lines in one order, since an actor does one thing at a time.
    func say(_ line: String, in room: String) {
        for loop in group {
            loop.submit { [members] in members.withValue { $0.deliver(line, to: room) } }
        }
    }
}
