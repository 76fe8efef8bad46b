import Foundation

/// A node that load is sent to: the base of its HTTPS URLs.
struct LoadTarget: Hashable, Sendable {
    let host: String
    let port: Int

    /// `https://host:port`, without a slash at the end.
    var base: String { "https://\(authority)" }

    /// `host:port`, as a request names it.
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Reads `https://host[:port][/]`.
    ///
    /// The URL that requests go to is made anew from host and port, so nothing else in the text (such as `user@`) can lead
    /// elsewhere than what was checked.
    /// - Throws: `CommandFailure` that says what is wrong with the text.
    init(_ text: String) throws(CommandFailure) {
        guard let components = URLComponents(string: text), components.scheme?.lowercased() == "https",
            var host = components.host, !host.isEmpty
        else { throw CommandFailure("'\(text)' is not a URL such as https://127.0.0.1:8443") }
        guard components.user == nil, components.password == nil, components.query == nil, components.fragment == nil,
            components.path.isEmpty || components.path == "/"
        else {
            throw CommandFailure("'\(text)': only scheme, host and port are expected, such as https://127.0.0.1:8443")
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.host = host
        port = components.port ?? 443
    }

    /// Whether requests stay on this machine: `localhost`, 127.0.0.0/8 written out, or `::1`.
    ///
    /// Other names are not asked of a resolver: what it answers now may not be what it answers next.
    var isLoopback: Bool {
        if host.lowercased() == "localhost" { return true }
        // Plain bytes, as the system writes addresses: the order of the network.
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 { return bytes[0] == 127 }
        guard inet_pton(AF_INET6, host, &bytes) == 1 else { return false }
        return bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// All targets of a run.
    /// - Throws: `CommandFailure` when there is none, one cannot be read, or one is not this machine and that was not allowed.
    static func parse(_ texts: [String], allowsRemote: Bool) throws(CommandFailure) -> [LoadTarget] {
        guard !texts.isEmpty else {
            throw CommandFailure(
                "no target: give --url https://127.0.0.1:8443, or source .zonekeeper/dev/env for ZONEKEEPER_URLS")
        }
        var targets: [LoadTarget] = []
        for text in texts { targets.append(try LoadTarget(text)) }
        if !allowsRemote, let remote = targets.first(where: { !$0.isLoopback }) {
            throw CommandFailure(
                "'\(remote.host)' is not this machine. Load can make a cluster unusable for its users, so other machines are "
                    + "loaded only with --allow-remote; use it on a cluster that is yours and that nobody needs just now"
            )
        }
        return targets
    }
}
