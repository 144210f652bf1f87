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
