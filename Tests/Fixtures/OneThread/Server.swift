import Promises
import Reactor
import ReactorIO

/// A server with state that its connections share.
final class Chat {
    private var members: [ObjectIdentifier: Connection] = [:]
    private var lines = 0
    private let listener: Listener

    init() throws {
        listener = try Listener.bind("127.0.0.1:0")
    }

    var address: SocketAddress { listener.localAddress }

    func serve() -> Promise<DrainResult> {
        listener.serve(ServeOptions(maxConnections: 100)) { connection in
            self.members[ObjectIdentifier(connection)] = connection
            connection.idleTimeout = .seconds(60)
            return self.talk(with: connection).ensure {
                self.members[ObjectIdentifier(connection)] = nil
            }
        }
    }

    private func talk(with connection: Connection) -> Promise<Void> {
        connection.read().then { outcome -> Promise<Void> in
            guard case .bytes(let bytes) = outcome else { return .value }
            self.lines += 1
            let copies = self.members.values.map { $0.write(bytes) }
            return when(fulfilled: copies).then { _ in self.talk(with: connection) }
        }
    }

    func close() { listener.close() }
}

/// A client of it.
func client(of chat: Chat, _ account: Account) -> Promise<[UInt8]> {
    connect(to: chat.address, timeout: .seconds(5)).then { connection in
        connection.write("hello from \(account.name)\n")
            .then { connection.receive() }
            .get { account.history.append("\($0.count) bytes") }
            .ensure { connection.close() }
    }
}

/// Datagrams, with an account of one thread.
func listen(on socket: DatagramSocket, for account: Account) -> Promise<Void> {
    socket.forEachPacket(onError: { error in account.history.append("\(error)") }) { bytes, origin in
        account.history.append("\(bytes.byteCount) bytes")
        socket.post(bytes, to: origin.address)
    }
}

/// A server whose connections are async functions, with the state of one thread.
final class Register {
    private let listener: Listener
    private var total = 0

    init() throws { listener = try Listener.bind("127.0.0.1:0") }

    var address: SocketAddress { listener.localAddress }

    func serve(_ account: Account) -> Promise<DrainResult> {
        var sales = 0
        return listener.serveAsync(onError: { error, _ in account.history.append("\(error)") }) { connection in
            for try await line in connection.lines {
                sales += 1
                self.total += Int(line) ?? 0
                account.balance += try await account.deposit(sales).value.balance
                try await connection.write("\(self.total)\n").value
            }
            self.listener.close()
        }
    }
}
