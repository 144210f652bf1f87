import PromiseKitNames
import Promises
import Reactor

func maps() -> Promise<Int> {
    number().map { $0 + 1 }.map { $0 * 2 }.map { $0 - 1 }.map { "\($0)" }.map { $0 + "x" }.map { $0.count }
        .map { $0 / 2 }.map { $0 + 1 }
}

func mapsOfAGuarantee() -> Guarantee<Int> {
    after(.zero).map { 1 }.map { $0 * 2 }.map { $0 - 1 }.map { "\($0)" }.map { $0 + "x" }.map { $0.count }
        .map { $0 / 2 }.map { $0 + 1 }
}

func thens() -> Promise<Page> {
    user().then { save($0) }.then { user() }.then { page($0.name) }.then { user($0.title.count) }
        .then { page($0.name) }.then { user($0.title.count) }.then { save($0) }.then { page() }
}

/// Refused before as too complex to type-check in reasonable time, as are the next two.
func values() -> Promise<Int> {
    number().then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
        .then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
}

func valuesAfterAGuarantee() -> Promise<Int> {
    after(.zero).then { .value(1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
        .then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
}

func valuesAndRecoveries() -> Promise<Int> {
    number().then { .value($0 + 1) }.recover { _ in .value(1) }.then { .value($0 + 1) }.recover { _ in .value(1) }
        .then { .value($0 + 1) }.recover { _ in .value(1) }.then { .value($0 + 1) }.recover { _ in .value(1) }
}

func valuesOfGuarantees() -> Guarantee<Int> {
    after(.zero).then { .value(1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
        .then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }.then { .value($0 + 1) }
}

func everyday() {
    firstly { user() }.then { save($0) }.then { after(.zero) }.then { page() }.recover { _ in cached() }
        .map { $0.title }.ensure { print("over") }.timeout(.seconds(1)).done { print($0) }.catch { print($0) }
}

func elements() -> Promise<[Int]> {
    names().thenMap { page($0) }.mapValues { $0.title }.filterValues { !$0.isEmpty }.sortedValues()
        .thenMap { user($0.count) }.compactMapValues { $0.name.first }.flatMapValues { "\($0)" }.mapValues {
            $0.isASCII
        }
        .mapValues { $0 ? 1 : 0 }
}

func onAPool(_ pool: ThreadPool) -> Promise<Int> {
    number().map(on: pool) { $0 + 1 }.then(on: pool) { .value($0 + 1) }.map(on: pool) { $0 - 1 }
        .get(on: pool) { print($0) }.then(on: pool) { .value($0 + 1) }.recover(on: pool) { _ in number() }
        .ensure(on: pool) { print("over") }.map(on: pool) { $0 * 2 }
}
