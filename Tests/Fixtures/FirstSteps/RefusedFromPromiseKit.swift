import PromiseKitNames
import Promises
import Reactor

// Names of PromiseKit that have no meaning here; the messages are their own explanation.

func defaultQueues() {
    conf.Q = (map: nil, return: nil)  // error: 'Q' is unavailable: leave it out
    conf.Q.map = .shared  // error: 'Q' is unavailable: leave it out: handlers run on the thread that attached
    conf.D.return = nil  // error: 'D' is unavailable: leave it out
}

func cancellable() -> CancellablePromise<Int> {  // error: 'CancellablePromise' has been renamed to 'Promise': every
    number().cancellize()  // error: 'cancellize()' is unavailable: leave it out: every promise can be cancelled
}

func thenable<P: CancellableThenable>(_ promise: P) {}  // error: 'CancellableThenable' has been renamed to 'Thenable'

func catchable(_ promise: any CancellableCatchMixin) {}  // error: 'CancellableCatchMixin' has been renamed to

func mixin(_ promise: any CatchMixin) {}  // error: 'CatchMixin' has been renamed to 'Catchable'

func errors(_ error: any Error) -> Bool {
    if case PMKError.returnedSelf = error { true } else { false }  // error: 'PMKError' has been renamed to
}

func configuration(_ configuration: PMKConfiguration) {}  // error: 'PMKConfiguration' has been renamed to
