@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Every short sequence of events, without sockets.
struct ListenerStateTests {
    private enum Event: CaseIterable {
        case serve, connect, disconnect, close, closeWithBacklog, drain, abort, fail, backlogEnds, loopEnds
    }

    /// A listener whose effects are only counted.
    private struct Model {
        var state = ListenerState()
        var open = 0
        var isServing = false
        var counts: [String: Int] = [:]
        var complaints: [String] = []

        mutating func perform(_ event: Event) {
            switch event {
            case .serve:
                if state.isClosed || isServing { return }
                isServing = true
                state.serve()
            case .connect:
                if state.isClosed || !isServing { return }
                open += 1
                state.counts.countActive()
            case .disconnect:
                if open == 0 { return }
                open -= 1
                if state.counts.countEnd(wasLingering: false, limit: .max) { state.connectionsDidEnd() }
            case .close: state.close()
            case .closeWithBacklog: state.close(withBacklog: true)
            case .drain: state.drain(until: .distantFuture)
            case .abort: state.abort()
            case .fail: state.fail(SystemError(.accept, 1))
            case .backlogEnds: if counts["acceptBacklog"] != nil { state.endBacklog() }
            case .loopEnds: state.loopWillEnd()
            }
            while let action = state.nextAction() {
                let name = String("\(action)".prefix { $0 != "(" })
                counts[name, default: 0] += 1
                if case .countDelivered = action { state.didCountDelivered() }
                switch action {
                case .acceptBacklog, .startTimer: break
                default: if counts["close"] == nil { complaints.append("\(name) before close") }
                }
            }
        }

        /// What `event` must have ended at once.
        mutating func check(after event: Event, isDrained: Bool) {
            if event == .abort && isDrained && counts["endDrain"] == nil { complaints.append("no end by the abort") }
            if event == .loopEnds && isServing && counts["endService"] == nil {
                complaints.append("no end with the loop")
            }
        }

        /// What follows when all connections have ended.
        mutating func finish() {
            perform(.close)
            while open > 0 { perform(.disconnect) }
            for name in ["acceptBacklog", "startTimer", "drainConnections", "endDrain", "close", "endService"]
            where counts[name] ?? 0 > 1 {
                complaints.append("\(name) twice")
            }
            if counts["close"] == nil { complaints.append("no close") }
            if isServing && counts["endService"] == nil { complaints.append("no endService") }
            if state.isDraining != (counts["endDrain"] != nil) { complaints.append("a drain without an end") }
            if counts["startTimer"] != nil && counts["endDrain"] == nil { complaints.append("the timer stays") }
        }
    }

    @Test func eachEffectComesOnce() {
        func explore(_ events: [Event], _ depth: Int) {
            var model = Model()
            var isDrained = false
            for event in events {
                model.perform(event)
                if event == .drain { isDrained = true }
                model.check(after: event, isDrained: isDrained)
            }
            model.finish()
            if isDrained && model.counts["endDrain"] == nil { model.complaints.append("no endDrain") }
            expectEqual(model.complaints, [], "\(events)")
            if depth > 0 { for event in Event.allCases { explore(events + [event], depth - 1) } }
        }
        explore([], 3)
        explore([.serve, .connect], 3)
        explore([.serve, .connect, .closeWithBacklog], 3)
        explore([.serve, .connect, .drain], 3)
    }
}
