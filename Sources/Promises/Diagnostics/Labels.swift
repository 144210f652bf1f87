// What `EventLoop.whatKeepsItAlive` calls those that wait for a descriptor and have no description.

extension ListenerDoor {
    package var label: String { "Listener(\(address))" }
}
