import ArgumentParser
import Foundation
import ServiceClient

/// `zonekeeper load`
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Load a running cluster, and measure how it answers and how it keeps its limits.",
        discussion: """
            With --rate or a --profile that has rates, requests are due whether the cluster keeps up or not, and their times \
            count from when they were due (an open loop: what users feel). Without, --concurrency clients each wait for one \
            answer before they send the next request (a closed loop: what the cluster can do at most).

            Only nodes on this machine are loaded, unless --allow-remote is given. Every run ends by itself, after --duration \
            or --count; Ctrl-C ends it early, and the report is of what was done until then.

            Try: zonekeeper load --prepare --operation create --concurrency 16 --duration 10
            Is the limit kept? zonekeeper load --rate 400 --duration 60 --limit 40 --expect-limit 40 --nodes moving:5
            Is retryAfter true? zonekeeper load --rate 60 --limit 40 --on-throttled honour
            Where is the limit? zonekeeper load --find-limit
            """)

    @Option(help: "What each request does: \(LoadOperation.allCases.map(\.rawValue).joined(separator: ", ")).")
    var operation: LoadOperation?

    @Option(help: "Operations with weights, such as create:1,update:2,read:7, or cloudkit-2019.")
    var mix: LoadMix?

    @OptionGroup(title: "Pace") var pace: LoadPaceOptions

    @OptionGroup(title: "Limits") var limits: LoadLimitOptions

    @Option(help: "public or private.")
    var database = "public"

    @Option(help: "The zone; other zones than the default one are in the private database.")
    var zone = LoadPlace.defaultZone

    @Option(help: "Spread requests over so many zones of each user, load-1 and on, in the private database.")
    var zones = 1

    @Option(help: "Send as so many users, load-1 and on, which --prepare makes with a session each.")
    var users = 1

    @Option(help: "Which node gets a request: even, one, or moving:5 (all to one, another every 5 seconds).")
    var nodes = NodePattern.even

    @Option(help: "The record type; --prepare adds it to the schema.")
    var type = "Load"

    @Option(
        help:
            "How many records of a zone reads, updates and queries choose from; those that are missing are made first.")
    var records = 10_000

    @Flag(help: "First add the record type to the schema and make users and zones; takes the administrator's token.")
    var prepare = false

    @Flag(help: "Load nodes on other machines too. They may become unusable for everyone meanwhile.")
    var allowRemote = false

    @Option(
        help: ArgumentHelp(
            "Write the results to a file too: its name ends in .json, .csv (each second) or .html (with charts). May be repeated.",
            valueName: "file"))
    var output: [ReportFile] = []

    @Option(help: ArgumentHelp("Write a page with charts, as --output does.", valueName: "file.html"))
    var report: ReportFile?

    @Flag(help: "Show nothing while the run goes.")
    var quiet = false

    @OptionGroup(title: "Cluster") var connection: ConnectionOptions

    func validate() throws {
        guard ["public", "private"].contains(database) else {
            throw ValidationError("--database: 'public' or 'private' is expected, not '\(database)'")
        }
        func check(_ name: String, _ value: Int, _ range: ClosedRange<Int>) throws {
            guard range.contains(value) else {
                throw ValidationError("\(name): \(range.lowerBound) to \(range.upperBound) is expected, not \(value)")
            }
        }
        try check("--records", records, 2...10_000_000)
        try check("--zones", zones, 1...10_000)
        try check("--users", users, 1...10_000)
        if mix != nil, operation != nil { throw ValidationError("--operation and --mix: give one of them") }
        if zones > 1, zone != LoadPlace.defaultZone { throw ValidationError("--zone and --zones: give one of them") }
        if zones > 1, database == "public" {
            throw ValidationError("--zones: the public database has one zone; add --database private")
        }
        if users > 1, !prepare {
            throw ValidationError(
                "--users: their sessions are made by --prepare, which takes the administrator's token")
        }
        if wanted.operations.contains(.sync), database == "public" || (zone == LoadPlace.defaultZone && zones == 1) {
            throw ValidationError("sync: only custom zones have changes to follow; add --database private --zone NAME")
        }
        if !files.isEmpty, limits.findLimit || limits.calibrate {
            throw ValidationError(
                "--output and --report hold one run: leave them out with --find-limit and --calibrate, and use --json")
        }
        if wanted.hasRecords, wanted.hasKeyValues, limits.limit != nil || limits.expectLimit != nil || limits.findLimit
        {
            throw ValidationError(
                "records and preferences have a limit each, and one run is held against one: leave one kind out of --mix"
            )
        }
        if let report, report.form != .html { throw ValidationError("--report: a name that ends in .html is expected") }
    }

    func run() async throws {
        for file in files { try file.check() }
        let stop = LoadStop()
        let signals = LoadSignals(stop)
        defer { signals.cancel() }
        if limits.calibrate { return try await calibrate(stop) }
        let session = try LoadSession(self, stop: stop)
        do {
            try await session.run()
        } catch {
            await session.shutdown()
            throw error
        }
        await session.shutdown()
    }

    private func calibrate(_ stop: LoadStop) async throws {
        let place = LoadPlace(container: "null", environment: "development", database: database, zones: zoneNames)
        let calibration = try await Calibration.measure(settings(place), seconds: pace.duration ?? 5, stop: stop)
        if connection.json { LoadOutput.print(calibration.json) } else { LoadOutput.print(calibration.text) }
    }

    /// What was asked for; one operation is a mix of its own.
    var wanted: LoadMix { mix ?? LoadMix(operation ?? .create) }

    var files: [ReportFile] { output + [report].compactMap(\.self) }

    private var zoneNames: [String] { zones == 1 ? [zone] : (1...zones).map { "load-\($0)" } }

    func settings(_ resolved: ConnectionSettings) throws -> LoadSettings {
        guard let container = resolved.container else {
            throw ValidationError("--container is missing; name it, or set ZONEKEEPER_CONTAINER")
        }
        return settings(
            LoadPlace(container: container, environment: resolved.environment, database: database, zones: zoneNames))
    }

    private func settings(_ place: LoadPlace) -> LoadSettings {
        LoadSettings(
            mix: wanted, pace: pace.pace, bound: pace.bound, place: place, recordType: type, records: records,
            connections: limits.findLimit ? pace.openConnectionCount : pace.connectionCount, seed: pace.seed,
            timeoutSeconds: pace.timeout, nodes: nodes,
            behaviours: limits.onThrottled.choice, users: users)
    }

    /// - Parameter variables: the environment's; `ZONEKEEPER_WEB_AUTH_TOKEN_FILE` counts where no option names a session, as with
    ///   other commands.
    func tokens(
        _ resolved: ConnectionSettings, _ variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> LoadTokens {
        var session = resolved.webAuthToken
        let file = variables["ZONEKEEPER_WEB_AUTH_TOKEN_FILE"] ?? ""
        if (connection.webAuthToken ?? "").isEmpty, !file.isEmpty {
            session = try SecretFile.read(file)
            guard session != "" else { throw CommandFailure("\(file) holds no token") }
        }
        guard let apiToken = resolved.apiToken else {
            throw ValidationError(
                "--api-token is missing; make one with `zonekeeper token create --api`, or set ZONEKEEPER_API_TOKEN")
        }
        guard session != nil || users > 1 else {
            throw ValidationError(
                "--web-auth-token is missing, and a load writes as a user; make one with `zonekeeper token create --session "
                    + "--user NAME`, or set ZONEKEEPER_WEB_AUTH_TOKEN or ZONEKEEPER_WEB_AUTH_TOKEN_FILE")
        }
        let secret = try resolved.administratorTokenFile.map { path throws(ServiceClientError) in
            try SecretFile.read(path)
        }
        return LoadTokens(apiToken: apiToken, webAuthToken: session, administrator: secret)
    }
}

extension LoadOperation: ExpressibleByArgument {}

extension LoadMix: ExpressibleByArgument {
    init?(argument: String) { self.init(argument) }
}

extension NodePattern: ExpressibleByArgument {
    init?(argument: String) { self.init(argument) }

    var defaultValueDescription: String { name }
}
