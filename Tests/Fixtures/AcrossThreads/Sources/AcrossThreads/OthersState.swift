import Promises

/// A handler belongs to the thread of its function, which here may be any.
func othersState(_ window: Window, _ promise: Promise<String>) -> Promise<Void> {
    promise.done { window.title = $0 }  // error: main actor-isolated property 'title' can not be mutated
}
