@preconcurrency import Foundation
import Glibc
import Promises

// reference to var 'stderr' is not concurrency-safe because it involves shared mutable state
func printTheDate() { fputs("\(Date())", stderr) }

// sending 'self.store' risks causing data races
final class PatientStore {
    var count = 0
    nonisolated(nonsending) func add() async { count += 1 }
}

actor PatientShop {
    private let store = PatientStore()
    func sell() async { await store.add() }
}
