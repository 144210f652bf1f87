import Promises
import Reactor
import ReactorIO

/// Only for this thread.
final class Tally {
    var count = 0
}

// A body on the loop of this thread, with non-Sendable objects.
let tally = Tally()
try EventLoop.current.run {
    tally.count += try await Promise.value(1).value
    try await firstly { after(.milliseconds(1)) }.asPromise().value
    tally.count += 1
}

// The main actor together with the loop.
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

// Async handlers on this loop, and on those of a group.
let server = OneLoopServer()
let listener = try Listener.bind("127.0.0.1:0")
let serving = server.serve(listener)
print("answer \(try hang(ask(listener.localAddress, "hello"), timeout: .seconds(2)) ?? "nothing")")
try hang(serving, timeout: .seconds(2))
print(server.report)

let group = try LoopGroup(loops: 2, name: "guests")
let guestbooks = LoopLocal { Guestbook() }
let shared = try Listener.bind("127.0.0.1:0")
let servingAll = serve(shared, on: group, guestbooks)
for name in ["ada", "bob"] {
    print("answer \(try hang(ask(shared.localAddress, name), timeout: .seconds(2)) ?? "nothing")")
}
print("\(hang(guests(group, guestbooks))) guests")
// A handler at the top level belongs to the main actor, whose thread drives this loop.
let own = try Listener.bind("127.0.0.1:0")
let servingHere = own.serveAsync { connection in
    tally.count += 1
    for try await line in connection.lines { try await connection.write("\(tally.count) \(line)\n").value }
    own.close()
}
print("answer \(try hang(ask(own.localAddress, "here"), timeout: .seconds(2)) ?? "nothing")")
try hang(servingHere, timeout: .seconds(2))
shared.close()
try hang(servingAll, timeout: .seconds(2))
group.stop()
group.join()
