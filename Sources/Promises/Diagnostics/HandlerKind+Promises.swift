import Reactor

extension HandlerKind {
    /// The closure of a promise's operator.
    public static var promiseHandler: HandlerKind { HandlerKind(rawValue: "promise handler") }
}
