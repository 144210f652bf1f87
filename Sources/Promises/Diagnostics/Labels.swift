// What `EventLoop.whatKeepsItAlive` calls those that wait for a descriptor and have no description.

extension Listener {
    package var label: String { "Listener(\(localAddress))" }
}
