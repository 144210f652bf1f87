@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Random requests to servers that answer, end, reset, are silent or speak unasked: every request settles, and the pool
/// is empty afterwards. `withNetwork` checks the descriptors.
struct PoolStormTests {
    @Test(.network(.virtual, turns: 1_000_000), arguments: 0..<6) func everyRequestSettles(seed: Int) throws {
        var random = SplitMix64(UInt64(seed))
        let servers = [try LineServer(net), try LineServer(net)]
        defer { withExtendedLifetime(servers) {} }
        for server in servers {
            server.answer = { line, connection in
                switch random.below(12) {
                case 0: connection.abort()
                case 1: connection.close(linger: .zero)
                case 2: return connection.write(line + "\nunasked\n")
                case 3: return connection.write(line).get { connection.abort() }
                case 4: return endless().asVoid()
                case 5: return after(.milliseconds(random.below(3_000))).then { connection.write(line + "\n") }
                default: return connection.write(line + "\n")
                }
                return .value
            }
        }
        let real = net.kernel.startConnect
        net.kernel.startConnect = { fd, address, length in
            random.once(in: 9) ? -Int(ENETUNREACH) : real(fd, address, length)
        }
        let port = try ReservedPort()
        let addresses = servers.map(\.address) + [port.address]
        var checks = 0
        let pool = Pool<Connection>(
            limits: PoolLimits(
                perKey: 1 + random.below(4), waiting: random.once(in: 2) ? .max : 5,
                waitTimeout: random.once(in: 4) ? nil : .seconds(4), makeTimeout: .seconds(2),
                idleTimeout: .seconds(1 + random.below(4))),
            check: random.once(in: 2)
                ? nil
                : { connection in
                    checks += 1
                    if checks % 7 == 0 { throw Flaw(checks) }
                    return checks % 3 == 0 ? .value : talk("check", connection).asVoid().timeout(.seconds(2))
                })
        var requests: [Promise<String>] = []
        for number in 0..<400 {
            let text = "\(number)"
            let closes = random.once(in: 8)
            let request = pool.with(.address(random.pick(addresses)), isIdempotent: random.once(in: 2)) {
                connection in
                talk(text, connection).timeout(.seconds(2)).get { answer in
                    expectEqual(answer, text, "an answer to another request")
                    if closes { connection.close() }
                }
            }
            requests.append(request)
            request.ignoringErrors()
            if random.once(in: 6) { random.pick(requests).cancel() }
            if random.once(in: 3) { net.settle(.milliseconds(random.below(500))) }
            let counts = pool.counts
            expect(counts.idle <= counts.open && counts.making >= 0)
        }
        if random.once(in: 2) {
            hang(pool.drain(deadline: .seconds(60)))
        } else {
            _ = hang(when(resolved: requests))
            pool.close()
        }
        net.settle(.milliseconds(1))
        let (resolved, fulfilled) = (requests.count { $0.isResolved }, requests.count { $0.isFulfilled })
        expect(resolved == requests.count && fulfilled > 0)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }
}
