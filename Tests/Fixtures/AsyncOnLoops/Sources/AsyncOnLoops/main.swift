import Promises
import Reactor

/// Of this thread alone.
final class Tally {
    var count = 0
}

// A body on the loop of this thread, with what is not Sendable.
let tally = Tally()
try EventLoop.current.run {
    tally.count += try await Promise.value(1).value
    try await firstly { after(.milliseconds(1)) }.asPromise().value
    tally.count += 1
}

// The main actor beside the loop.
let screen = Screen()
try EventLoop.current.run { try await screen.refresh() }
print("screen \(screen.lines.joined(separator: " "))")

// An actor on a loop of another thread, and a client on this one.
let worker = try EventLoop.spawn(name: "room")
let room = ChatRoom(on: worker)
let (address, resolver) = Promise<SocketAddress>.pending()
let served = Promise { try await room.serveOne { resolver.fulfill($0) } }
let answer = address.then { connect(to: $0) }.then { client in
    client.write("hello\n").then { client.readLine() }.ensure { client.close() }
}
print("answer \(try hang(answer, timeout: .seconds(2)) ?? "nothing")")
tally.count += try hang(served, timeout: .seconds(2))
worker.stop()
worker.join()
print("total \(tally.count)")
