import Promises
import Reactor
import Glibc
@inline(never) func now() -> Double { var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) + Double(t.tv_nsec)/1e9 }
func rss() -> Int { var u = rusage(); getrusage(RUSAGE_SELF.rawValue == 0 ? 0 : 0, &u); return u.ru_maxrss }
func chain(_ n: Int) {
  for _ in 0..<n {
    let (p, r) = Promise<Int>.pending()
    var q = p
    for i in 0..<10 { q = q.map { $0 &+ i } }
    r.fulfill(1)
    _ = try! hang(q)
  }
}
func rec(_ n: Int) -> Promise<Void> { Promise<Void>.value.then { n == 0 ? .value : rec(n-1) } }
func rec2(_ n: Int) -> Promise<Void> { after(.zero).then { n == 0 ? .value : rec2(n-1) } }
func main() {
  chain(1000)
  var t = now(); chain(200_000); print("hop ns", (now()-t)/200_000/10*1e9)
  t = now(); try! hang(rec(10_000_000)); print("rec ns", (now()-t)/10e6*1e9, "rss", rss())
  t = now(); try! hang(rec2(1_000_000)); print("rec2 ns", (now()-t)/1e6*1e9, "rss", rss())
  do { let (p, r) = Promise<Int>.pending(); var q = p; for _ in 0..<1_000_000 { q = q.map { $0 + 1 } }; r.fulfill(0); print(try! hang(q)) }
  do { let (p, r) = Promise<Int>.pending(); var q = p; for _ in 0..<1_000_000 { q = q.map { $0 + 1 } }; r.reject(PromiseError.timedOut); do { print(try hang(q)) } catch { print(error) } }
  do { var (p, r): (Promise<Int>, Resolver<Int>?) = Promise<Int>.pending(); var q = p; for _ in 0..<1_000_000 { q = q.map { $0 + 1 } }; r = nil; do { print(try hang(q)) } catch { print(error) } }
  EventLoop.withLoop { _ in let (p, r) = Promise<Int>.pending(); var q = p; for _ in 0..<1_000_000 { q = q.map { $0 + 1 } }; _ = r }
  print(try! hang(when(fulfilled: Promise.value(1), Guarantee.value("x"), after(.milliseconds(3)))))
  print(try! hang(when(fulfilled: [Promise.value(1), .value(2)])))
  do { let (p, r) = Promise<Int>.pending(); try hang(p, timeout: .milliseconds(10)); _ = r } catch { print(error) }
  print("done", rss(), EventLoop.current.metrics)
}
main()
