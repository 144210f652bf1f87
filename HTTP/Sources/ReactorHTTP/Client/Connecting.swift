import Promises

// How the connections of a client are made.

extension HTTPClient.Options {
    /// Where to connect for the server that `key` names: to it, or to the proxy that opens a tunnel.
    func route(_ key: PoolKey) throws -> PoolKey {
        let address = try WebAddress("\(key)")
        guard address.isSecure, let proxy = try proxies.proxy(for: address) else { return address.endpoint }
        return proxy.address.endpoint
    }

    /// Makes a new connection secure, if its server wants that.
    func prepare(_ connection: Connection, _ key: PoolKey) throws -> Promise<Void> {
        let address = try WebAddress("\(key)")
        guard address.isSecure else { return .value }
        guard let startTLS else { throw FetchError.noTLS(address.authority) }
        let proxy = try proxies.proxy(for: address)
        let opened = proxy.map { openTunnel(to: address, by: $0, connection) } ?? .value
        return opened.then { startTLS(connection, address.name) }.asVoid()
    }

    /// RFC 9110, section 9.3.6.
    private func openTunnel(to address: WebAddress, by proxy: Proxy, _ connection: Connection) -> Promise<Void> {
        let target = "\(address.host):\(address.port)"
        let account = proxy.authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        let sent = connection.write("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(account)\r\n")
        // As the response to HEAD, one that opens a tunnel has no body, whatever its fields say.
        let parser = ResponseParser(maxHead: maxHead, maxFields: maxFields, isToHead: true)
        return sent.then { connection.readFrame(parser) }.done { head in
            guard let head else { throw FetchError.endedEarly }
            guard head.status.isSuccess else { throw FetchError.refusedByProxy(head.status) }
        }
    }
}
