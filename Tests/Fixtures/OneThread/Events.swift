import Promises
import Reactor

// Invented events, for testing a log handler.

func madeUpEvents() -> [LogEvent] {
    let promise = Provenance(name: "login", type: "Promise<Int>", callSite: CallSite(file: "App/Login.swift", line: 12))
    let slow = SlowHandler(duration: .seconds(1), kind: .timer, callSite: CallSite())
    return [.unhandledRejection(PromiseError.timedOut, promise), .abandoned(Provenance()), .slowHandler(slow, promise)]
}
