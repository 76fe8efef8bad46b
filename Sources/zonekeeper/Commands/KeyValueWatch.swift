import ArgumentParser
import RecordModel
import ServiceClient

struct KeyValueWatchCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print changes as they come, until it is stopped.",
        discussion: """
            Goes on by itself, on another node where one is lost. With --json each change is a line; the last one of \
            those that came together has the syncToken to go on from. --timeout ends it after so long, --count after \
            so many changes.
            """)

    @OptionGroup var options: ClientOptions

    @Option(
        help: ArgumentHelp(
            "The token to go on from, such as `kv changes` prints; without one, what changes from now on.",
            valueName: "token"))
    var since: String?

    @Option(help: "End after so many changes.")
    var count: Int?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        var watching = FeedWatching(count: count, seconds: options.timeout?.seconds) { token, wait, left in
            try connection.preferencesRequest(
                "watch",
                .members([
                    "syncToken": .given(token), "timeout": .integer(wait),
                    "resultsLimit": left.map { .integer(Int64($0)) },
                ]))
        }
        try await watching.follow("changes", since: since, on: connection) {
            try await connection.preferences("changes", $0)
        } show: { page, changes in
            show(changes, token: page["syncToken"]?.string)
        }
        if !options.json { print("token \(watching.token ?? "")") }
    }

    private func show(_ changes: [JSONValue], token: String?) {
        let lines = changes.enumerated().map { position, change in
            guard options.json else { return Self.line(change) }
            let isLast = position == changes.count - 1
            return JSONValue.members(["change": change, "syncToken": isLast ? .given(token) : nil])
                .plainText
        }
        // Standard output may be a pipe, which would keep lines back.
        Console.printPart(lines.map { $0 + "\n" }.joined())
    }

    static func line(_ change: JSONValue) -> String {
        let device = change["device"]?.string.map { " (by \($0))" } ?? ""
        let value = (change["value"]?["value"] ?? .null).simplified.plainText.shortened(to: 200)
        let what = change["deleted"] == .bool(true) ? " deleted" : " = \(value)"
        return "\(change.time("modified"))  \(change.text("key"))\(what)\(device)".onOneLine
    }
}

/// Follows a feed of a user's by long polls.
struct FeedWatching {
    /// A request for what comes after a token: it is waited for so many seconds, and at most so many entries are
    /// wanted; nil for any number.
    typealias Request = (_ token: String?, _ seconds: Int64, _ countLeft: Int?) throws -> ServiceRequest

    /// Entries still to be shown; nil for any number.
    private var countLeft: Int?
    private let end: ContinuousClock.Instant?
    private let request: Request
    private(set) var token: String?

    /// What the server waits at most.
    private static let pollSecondsMax = 30.0
    /// How much longer than the server an answer is waited for.
    private static let graceSeconds: Int64 = 15

    init(count: Int?, seconds: Double?, request: @escaping Request) {
        countLeft = count
        self.request = request
        end = seconds.map { ContinuousClock.now + .seconds($0) }
    }

    /// Follows the feed to its end.
    /// - Parameters:
    ///   - key: the member that holds a page's entries.
    ///   - since: the token to begin after; nil for after everything that is there now.
    ///   - changes: reads a page of the whole feed, or of what brings its end sooner.
    ///   - show: is given each page that has entries, and these.
    mutating func follow(
        _ key: String, since: String?, on connection: Connection,
        changes: (JSONValue) async throws -> ServiceResponse, show: (JSONValue, [JSONValue]) -> Void
    ) async throws {
        // A cluster that cannot be reached, or a token that is no good, is told of at once; later ones are waited for.
        token = since
        if since == nil {
            token = try await connection.feed(key, since: nil, changes).token
        } else {
            take(try await connection.send(try poll(seconds: 0)).checked().json(), key, show)
        }
        while let page = try await next(on: connection) { take(page, key, show) }
    }

    private func next(on connection: Connection) async throws -> JSONValue? {
        if countLeft == 0 { return nil }
        let left = end.map { ($0 - .now) / .seconds(1) } ?? .infinity
        if left <= 0 { return nil }
        // Whole seconds, so the last poll may end a little after its time.
        var request = try poll(seconds: Int64(min(left, Self.pollSecondsMax).rounded(.up)))
        request.waitsForConnection = true
        request.patienceSeconds = left
        // Without an end it is tried for ever; with one, patience ends shortly before it.
        let response: ServiceResponse
        do {
            response = try await connection.client.send(request)
        } catch let error as ServiceUnreachable {
            guard end != nil else { throw CommandFailure(error.description) }
            return nil
        } catch let error as ServiceClientError {
            throw CommandFailure(error)
        }
        if end != nil, [429, 503].contains(response.status) { return nil }
        return try response.checked().json()
    }

    private func poll(seconds: Int64) throws -> ServiceRequest {
        var request = try request(token, seconds, countLeft)
        request.timeoutSeconds = seconds + Self.graceSeconds
        return request
    }

    private mutating func take(_ page: JSONValue, _ key: String, _ show: (JSONValue, [JSONValue]) -> Void) {
        token = page["syncToken"]?.string ?? token
        let entries = page[key]?.array ?? []
        countLeft = countLeft.map { max($0 - entries.count, 0) }
        if !entries.isEmpty { show(page, entries) }
    }
}
