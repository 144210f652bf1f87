import ReactorHTTP

/// The page, `page.html`, whose data comes from `/events`.
enum Page {
    /// `NONCE` in it stands for the number that admits its style and script.
    private static let html = String(decoding: PackageResources.page_html, as: UTF8.self)

    static func response() -> Response {
        // Random for each response, so that only the page's own script has it.
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36)
        let policy =
            "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; connect-src 'self'; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        let text = html.split(separator: "NONCE", omittingEmptySubsequences: false).joined(separator: nonce)
        return Response(text, type: "text/html; charset=utf-8", headers: ["Content-Security-Policy": policy])
    }
}
