import ArgumentParser
import Foundation
import ServiceClient

struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Load a running cluster, and measure how it answers and how it keeps its limits.",
        discussion: """
            With --rate or a --profile that has rates, requests are due whether the cluster keeps up or not, and their \
            times count from when they were due (an open loop: what users feel). Without, --concurrency clients each \
            wait for one answer before they send the next request (a closed loop: what the cluster can do at most).

            Only nodes on this machine are loaded, unless --allow-remote is given. Every run ends by itself, after \
            --duration or --count; Ctrl-C ends it early, and the report is of what was done until then.

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

    @Option(help: "The size of the files of asset-upload and asset-download, such as 100kB (usually 1 MB).")
    var assetSize: AssetSize?

    @Flag(help: "First add the record type to the schema and make users and zones; takes the administrator's token.")
    var prepare = false

    @Flag(help: "Load nodes on other machines too. They may become unusable for everyone meanwhile.")
    var allowRemote = false

    @Option(
        help: ArgumentHelp(
            "Write the results to a file too: its name ends in .json, .csv (each second) or .html (with "
                + "charts). May be repeated.",
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
        try checkAssets()
        if limits.findLimit, let seconds = pace.duration, seconds < LimitFinder.secondsMin {
            throw ValidationError(
                "--duration: a trial of --find-limit takes \(Int(LimitFinder.secondsMin)) seconds at least, as a "
                    + "container may have saved up requests for its first ones")
        }
        if !files.isEmpty, limits.findLimit || limits.calibrate {
            throw ValidationError(
                "--output and --report hold one run: leave them out with --find-limit and --calibrate, and use --json")
        }
        if wanted.hasRecords, wanted.hasKeyValues, limits.limit != nil || limits.expectLimit != nil || limits.findLimit
        {
            throw ValidationError(
                "records and preferences have a limit each, and one run is held against one: leave one kind out of "
                    + "--mix")
        }
        if let report, report.form != .html { throw ValidationError("--report: a name that ends in .html is expected") }
    }

    private func checkAssets() throws {
        guard wanted.hasAssets else {
            if assetSize != nil {
                throw ValidationError("--asset-size: only asset-upload and asset-download have files")
            }
            return
        }
        if zones > 1 { throw ValidationError("--zones: the files of a run are in one zone; name it with --zone") }
        if limits.findLimit || limits.calibrate {
            throw ValidationError("--find-limit and --calibrate are for requests that do not move files")
        }
        let seconds = wanted.operations.contains(.assetUpload) ? Self.uploadSecondsMax : Self.downloadSecondsMax
        if let duration = pace.bound.seconds, duration > seconds {
            throw ValidationError(
                "--duration: at most \(Int(seconds)) seconds, as URLs of files are good for 15 minutes (uploads) or an hour"
            )
        }
    }

    /// A little less than the life of the URLs.
    private static let uploadSecondsMax = 840.0
    private static let downloadSecondsMax = 3_300.0

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
        Console.print(connection.json ? calibration.json : Array(calibration.text.utf8))
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
            timeoutSeconds: pace.timeout, nodes: nodes, behaviours: limits.onThrottled, users: users,
            assetBytes: assetSize?.bytes ?? LoadSettings.assetBytesStandard)
    }

    func tokens(
        _ resolved: ConnectionSettings, _ variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> LoadTokens {
        var session = resolved.webAuthToken
        let file = connection.webAuthTokenFile ?? variables["ZONEKEEPER_WEB_AUTH_TOKEN_FILE"] ?? ""
        if !file.isEmpty {
            session = try SecretFile.read(file)
            guard session != "" else { throw CommandFailure("\(file) holds no token") }
        }
        let apiToken = try resolved.requiredAPIToken()
        guard session != nil || users > 1 else {
            throw ValidationError(
                "a user's session is missing, and a load writes as a user; make one with `zonekeeper token create "
                    + "--session --user NAME`, and set ZONEKEEPER_WEB_AUTH_TOKEN or name its file with "
                    + "--web-auth-token-file")
        }
        let secret = try resolved.administratorTokenFile.map { path throws(ServiceClientError) in
            try SecretFile.read(path)
        }
        return LoadTokens(apiToken: apiToken, webAuthToken: session, administrator: secret)
    }
}

extension LoadOperation: ExpressibleByArgument {}

/// The size of a file: 1 byte to 50 MB.
struct AssetSize: ExpressibleByArgument, Hashable {
    var bytes: Int

    init?(argument: String) {
        guard let bytes = Units.parse(argument), (1...50_000_000).contains(bytes) else { return nil }
        self.bytes = Int(bytes)
    }
}

extension LoadMix: ExpressibleByArgument {}

extension NodePattern: ExpressibleByArgument {
    var defaultValueDescription: String { name }
}

struct LoadPaceOptions: ParsableArguments {
    @Option(help: "Open loop: requests a second that are due, such as 500 or 500/s.")
    var rate: LoadRate?

    @Option(
        help:
            "Open loop: constant, ramp:10-400, step:100,200,400, spike:400 (over --rate, in the middle fifth) or soak.")
    var profile = LoadProfileText.constant

    @Option(help: "Open loop: poisson (as from independent users) or even.")
    var arrivals: ArrivalSchedule.Spacing = .poisson

    @Option(help: "Open loop: requests under way at most; those due beyond are counted as not issued.")
    var maxOutstanding = 4_096

    @Option(help: "Closed loop: clients that each have one request under way (default: 16).")
    var concurrency: Int?

    @Option(
        help:
            "Seconds to send for, such as 10 or 2.5 (default: 10, or as long as --count takes; profiles 30, soak 3600)."
    )
    var duration: Double?

    @Option(help: "Requests to send; with --duration the run ends at whichever comes first.")
    var count: Int?

    @Option(help: "Connections over all nodes (default: --concurrency, or 64 in an open loop).")
    var connections: Int?

    @Option(help: "The same seed makes the same requests, due at the same times.")
    var seed: UInt64 = 1

    @Option(help: "Seconds after which a request counts as unanswered.")
    var timeout = 10

    func validate() throws {
        if profile.hasOwnRates, rate != nil {
            throw ValidationError("--profile \(profile.name) says its rates itself: leave --rate out")
        }
        if !profile.hasOwnRates, profile != .constant, rate == nil {
            throw ValidationError("--profile \(profile.name) needs --rate")
        }
        if isOpen, concurrency != nil {
            throw ValidationError("--rate is an open loop and --concurrency a closed one: give one of them")
        }
        try check("--max-outstanding", maxOutstanding, 1...100_000)
        if let concurrency { try check("--concurrency", concurrency, 1...10_000) }
        if let count { try check("--count", count, 1...1_000_000_000) }
        if let connections { try check("--connections", connections, 1...10_000) }
        try check("--timeout", timeout, 1...600)
        if let duration, !(duration > 0 && duration <= 86_400) {
            throw ValidationError("--duration: above 0 and at most 86400 seconds are expected, not \(duration)")
        }
    }

    private var isOpen: Bool { rate != nil || profile.hasOwnRates }

    var bound: LoadBound { LoadBound(seconds: duration ?? profile.defaultSeconds, count: count) }

    var pace: LoadPace {
        guard isOpen else { return .closed(concurrency: concurrency ?? 16) }
        let profile = profile.profile(rate: rate?.perSecond ?? 1, seconds: bound.seconds ?? 30)
        return .open(profile: profile, spacing: arrivals, outstandingMax: maxOutstanding)
    }

    var connectionCount: Int { isOpen ? openConnectionCount : connections ?? concurrency ?? 16 }

    /// Of an open loop, whether the pace is one or not.
    var openConnectionCount: Int { connections ?? 64 }
}

/// - Throws: `ValidationError` where an option's value is out of range.
func check(_ name: String, _ value: Int, _ range: ClosedRange<Int>) throws {
    guard range.contains(value) else {
        throw ValidationError("\(name): \(range.lowerBound) to \(range.upperBound) is expected, not \(value)")
    }
}

extension LoadProfileText: ExpressibleByArgument {
    var defaultValueDescription: String { name }
}

/// Requests a second, as `500`, `0.5` or `500/s`; one in 1,000 seconds at least.
struct LoadRate: ExpressibleByArgument, Hashable {
    var perSecond: Double

    init?(argument: String) {
        let digits = argument.hasSuffix("/s") ? argument.dropLast(2) : argument[...]
        guard let number = Double(digits), number >= 0.001, number <= 1_000_000 else { return nil }
        perSecond = number
    }
}

extension ArrivalSchedule.Spacing: ExpressibleByArgument {}

struct LoadLimitOptions: ParsableArguments {
    @Option(
        help: "Clients that are told to slow down: ignore, honour or back-off, or shares such as honour:1,ignore:9.")
    var onThrottled = WeightedChoice([(ThrottleBehaviour.ignore, 1)])

    @Option(
        help: ArgumentHelp(
            "Requests a second that the limit should allow; exit code 0 where it was kept, 1 where not, 3 where "
                + "the run cannot tell.",
            valueName: "rate"))
    var expectLimit: LoadRate?

    @Option(
        help: ArgumentHelp(
            "How much less than limit x time is tolerated, 0.5% or 0.005 (the default); of --find-limit: how closely it "
                + "searches (2%).",
            discussion: "More than limit x (time + 1 s) is not: so much a container may save up."))
    var tolerance: LoadTolerance?

    private static let toleranceDefault = 0.005
    private static let searchDefault = 0.02

    var searchTolerance: Double { tolerance?.share ?? Self.searchDefault }

    @Option(
        help: ArgumentHelp(
            "Set the container's limit for the run, and put the old one back; takes the administrator's token.",
            valueName: "per second"))
    var limit: Int?

    @Flag(
        help: ArgumentHelp(
            "Search for the highest rate that is accepted, with trials of --duration (default: 5 s each, which is "
                + "the least, and up to 60 s near the limit)."))
    var findLimit = false

    @Flag(help: "Measure this tester against a server that does nothing, on this machine, and load no cluster.")
    var calibrate = false

    func validate() throws {
        if let limit { try check("--limit", limit, 1...1_000_000) }
        if findLimit, calibrate { throw ValidationError("--find-limit and --calibrate: give one of them") }
        if findLimit, expectLimit != nil {
            throw ValidationError("--expect-limit judges one run and --find-limit makes several: give one of them")
        }
    }

    var expectation: LoadReport.Expectation {
        LoadReport.Expectation(
            limit: expectLimit?.perSecond ?? limit.map(Double.init),
            tolerance: expectLimit == nil ? nil : tolerance?.share ?? Self.toleranceDefault)
    }
}

extension WeightedChoice: ExpressibleByArgument where Value == ThrottleBehaviour {
    var defaultValueDescription: String { values[0].rawValue }
}

/// A part of something, as `2%` or `0.02`.
struct LoadTolerance: ExpressibleByArgument, Hashable {
    var share: Double

    init?(argument: String) {
        let isPercent = argument.hasSuffix("%")
        guard let number = Double(isPercent ? argument.dropLast() : argument[...]) else { return nil }
        let share = isPercent ? number / 100 : number
        guard share > 0, share < 1 else { return nil }
        self.share = share
    }
}
