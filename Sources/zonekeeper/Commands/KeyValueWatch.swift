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
        var watching = PreferenceWatching(connection: connection, count: count, seconds: options.timeout?.seconds)
        // A cluster that cannot be reached, or a token that is no good, is told of at once; later ones are waited for.
        try await watching.begin(since: since, show)
        while try await watching.next(show) {}
        if !options.json { print("token \(watching.token ?? "")") }
    }

    private func show(_ changes: [JSONValue], token: String?) {
        let lines = changes.enumerated().map { position, change in
            guard options.json else { return Self.line(change) }
            let isLast = position == changes.count - 1
            return JSONValue.members(["change": change, "syncToken": isLast ? token.map { .string($0) } : nil])
                .plainText
        }
        // Standard output may be a pipe, which would keep lines back.
        Console.printPart(lines.map { $0 + "\n" }.joined())
    }

    /// A change as people read it, on one line: control characters, which would command the terminal, become spaces.
    static func line(_ change: JSONValue) -> String {
        let device = change["device"]?.string.map { " (by \($0))" } ?? ""
        let value = (change["value"]?["value"] ?? .null).simplified.plainText.shortened(to: 200)
        let what = change["deleted"] == .bool(true) ? " deleted" : " = \(value)"
        let scalars = "\(change.time("modified"))  \(change.text("key"))\(what)\(device)".unicodeScalars
        return String(String.UnicodeScalarView(scalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
    }
}

/// Follows a store by long polls.
struct PreferenceWatching {
    /// Is given the changes of a page, and the token after them.
    typealias Show = (_ changes: [JSONValue], _ token: String?) -> Void

    private let connection: Connection
    /// Changes still to be shown; nil for any number.
    private var countLeft: Int?
    private let end: ContinuousClock.Instant?
    /// Where to go on.
    private(set) var token: String?

    /// What the server waits at most.
    private static let pollSecondsMax = 30.0
    /// How much longer than the server an answer is waited for.
    private static let graceSeconds: Int64 = 15

    /// - Parameters:
    ///   - count: ends after so many changes.
    ///   - seconds: ends after so long.
    init(connection: Connection, count: Int?, seconds: Double?) {
        self.connection = connection
        countLeft = count
        end = seconds.map { ContinuousClock.now + .seconds($0) }
    }

    /// Finds where to begin: after a token, or after everything that is there now.
    mutating func begin(since: String?, _ show: Show) async throws {
        guard let since else {
            token = try await connection.preferenceChanges(since: nil).token
            return
        }
        token = since
        try take(try await connection.send(try request(seconds: 0)).checked(), show)
    }

    /// Waits for changes.
    /// - Returns: false once it has come to its end.
    mutating func next(_ show: Show) async throws -> Bool {
        if countLeft == 0 { return false }
        let left = end.map { ($0 - .now) / .seconds(1) } ?? .infinity
        if left <= 0 { return false }
        // Whole seconds, so the last poll may end a little after its time.
        var request = try request(seconds: Int64(min(left, Self.pollSecondsMax).rounded(.up)))
        request.waitsForConnection = true
        request.patienceSeconds = left
        // Without an end it is tried for ever; with one, patience ends shortly before it.
        let response: ServiceResponse
        do {
            response = try await connection.client.send(request)
        } catch let error as ServiceUnreachable {
            guard end != nil else { throw CommandFailure(error.description) }
            return false
        } catch let error as ServiceClientError {
            throw CommandFailure(error)
        }
        if end != nil, [429, 503].contains(response.status) { return false }
        try take(response.checked(), show)
        return true
    }

    private func request(seconds: Int64) throws -> ServiceRequest {
        var request = try connection.preferencesRequest(
            "watch",
            .members([
                "syncToken": token.map { .string($0) }, "timeout": .integer(seconds),
                "resultsLimit": countLeft.map { .integer(Int64($0)) },
            ]))
        request.timeoutSeconds = seconds + Self.graceSeconds
        return request
    }

    private mutating func take(_ response: ServiceResponse, _ show: Show) throws {
        let page = try response.json()
        token = page["syncToken"]?.string ?? token
        let changes = page["changes"]?.array ?? []
        countLeft = countLeft.map { max($0 - changes.count, 0) }
        if !changes.isEmpty { show(changes, token) }
    }
}
