// Made by .ci/snippets.py from docs/coming-from/promisekit.md; do not edit.
// swift-format-ignore-file
import Foundation
import FoundationNetworking
import PromiseKitNames
import Promises
import Reactor

// docs/coming-from/promisekit.md: A service, before and after
extension URLSession {
    func dataTask(_: Namespacer, with request: URLRequest) -> Promise<(Data, URLResponse)> {
        Promise { try await self.data(for: request) }
    }
}

struct Weather: Codable, Sendable { var degrees: Double }

final class WeatherService {
    private var cache: [String: Weather] = [:]

    func weather(in city: String) -> Promise<Weather> {
        if let known = cache[city] { return .value(known) }
        let request = URLRequest(url: URL(string: "https://weather.example.org/\(city)")!)
        return firstly {
            URLSession.shared.dataTask(.promise, with: request)
        }.map(on: .shared) { data, _ in
            try JSONDecoder().decode(Weather.self, from: data)
        }.get { weather in
            self.cache[city] = weather
        }
    }
}

// docs/coming-from/promisekit.md: A controller, before and after
extension Snippets {
    static func promisekit2() throws {
        struct SoldOut: Error {}

        func stock(of fruit: String) -> Promise<Int> { after(.milliseconds(20)).map { fruit == "fig" ? 0 : 7 }.asPromise() }
        func price(of fruit: String) -> Promise<Int> { after(.milliseconds(30)).map { fruit.count }.asPromise() }

        final class OrderController {
            private(set) var open = 0

            func show(_ fruit: String) -> Promise<String> {
                open += 1
                return firstly {
                    when(fulfilled: stock(of: fruit), price(of: fruit)).timeout(.seconds(2))
                }.map { count, price -> String in
                    guard count > 0 else { throw SoldOut() }
                    return "\(count) at \(price)"
                }.recover { error -> Promise<String> in
                    guard error is SoldOut else { throw error }
                    return .value("sold out")
                }.ensure {
                    self.open -= 1
                }
            }
        }

        let controller = OrderController()
        let pages = try hang(when(fulfilled: controller.show("pear"), controller.show("fig")))
        assert(pages.0 == "7 at 4" && pages.1 == "sold out" && controller.open == 0)
        _ = controller
        _ = pages
    }
}
