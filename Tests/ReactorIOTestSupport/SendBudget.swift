import Glibc
import PromisesTestSupport

/// A kernel whose sockets together accept a limited number of bytes.
final class SendBudget {
    /// The number of bytes that `send` accepts before it returns `EAGAIN`.
    var remaining: Int

    fileprivate init(_ count: Int) { remaining = count }
}

extension Network {
    /// From now on the kernel accepts `count` bytes, and any that the test adds to the budget.
    @discardableResult
    func limitSends(to count: Int) -> SendBudget {
        let budget = SendBudget(count)
        let send = kernel.send
        kernel.send = {
            let accepted = min($2, budget.remaining)
            budget.remaining -= accepted
            return accepted == 0 ? -Int(EAGAIN) : send($0, $1, accepted)
        }
        return budget
    }
}
