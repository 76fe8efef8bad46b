import ArgumentParser
import Foundation

/// `zonekeeper load`
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Load a running cluster, and measure how it answers.",
        discussion: """
            With --rate requests are due at that rate whether the cluster keeps up or not, and their times count from when \
            they were due (an open loop: what users feel). Without it, --concurrency clients each wait for one answer before \
            they send the next request (a closed loop: what the cluster can do at most).

            Only nodes on this machine are loaded, unless --allow-remote is given. Every run ends by itself, after --duration \
            or --count; Ctrl-C ends it early, and the report is of what was done until then.

            Try: zonekeeper load --prepare --operation create --concurrency 16 --duration 10
            """)

    @Option(help: "What each request does: \(LoadOperation.allCases.map(\.rawValue).joined(separator: ", ")).")
    var operation = LoadOperation.create

    @OptionGroup(title: "Pace") var pace: LoadPaceOptions

    @Option(help: "public or private.")
    var database = "public"

    @Option(help: "The zone; other zones than the default one are in the private database.")
    var zone = LoadPlace.defaultZone

    @Option(help: "The record type; --prepare adds it to the schema.")
    var type = "Load"

    @Option(help: "How many records reads and queries choose from; those that are missing are made first.")
    var records = 10_000

    @Flag(help: "First add the record type to the schema (and make the zone); takes the administrator's token.")
    var prepare = false

    @Flag(help: "Load nodes on other machines too. They may become unusable for everyone meanwhile.")
    var allowRemote = false

    @OptionGroup(title: "Cluster") var connection: ConnectionOptions

    func validate() throws {
        guard ["public", "private"].contains(database) else {
            throw ValidationError("--database: 'public' or 'private' is expected, not '\(database)'")
        }
        guard (2...10_000_000).contains(records) else { throw ValidationError("--records: 2 to 10000000 is expected") }
    }

    func run() async throws {
        let resolved = try connection.resolved()
        let settings = try settings(resolved)
        let targets = try LoadTarget.parse(resolved.urls, allowsRemote: allowRemote)
        let tokens = try tokens(resolved)
        let client = try LoadClient(
            targets: targets, connections: settings.connections, authority: resolved.authority,
            timeoutSeconds: settings.timeoutSeconds)
        let counted = try countedNodes(targets)
        let meterClient = try LoadClient(
            targets: counted, connections: counted.count, authority: resolved.authority,
            timeoutSeconds: settings.timeoutSeconds)
        let report: LoadReport
        do {
            report = try await self.report(settings, client: client, meterClient: meterClient, tokens: tokens)
        } catch {
            try? await client.shutdown()
            try? await meterClient.shutdown()
            throw error
        }
        try await client.shutdown()
        try await meterClient.shutdown()
        if connection.json { Console.print(report.json) } else { print(report.text) }
        if report.succeeded == 0 { throw ExitCode(1) }
    }

    /// The nodes whose counters are read: with --url for some of ZONEKEEPER_URLS all of those, as a write costs each of them.
    private func countedNodes(_ targets: [LoadTarget]) throws -> [LoadTarget] {
        var others = connection
        others.url = []
        let known = try others.resolved().urls
        guard let nodes = try? LoadTarget.parse(known, allowsRemote: allowRemote), targets.allSatisfy(nodes.contains)
        else { return targets }
        return nodes
    }

    private func report(
        _ settings: LoadSettings, client: LoadClient, meterClient: LoadClient, tokens: LoadTokens
    ) async throws -> LoadReport {
        let stop = LoadStop()
        let signals = LoadSignals(stop)
        defer { signals.cancel() }
        let preparation = LoadPreparation(settings: settings, client: client, tokens: tokens, stop: stop)
        try await preparation.checkNodes()
        if prepare { try await preparation.prepare() }
        _ = try await preparation.fill()
        let meter = LoadMeter(client: meterClient, administrator: tokens.administrator)
        let before = await meter.read()
        let result = await LoadRun(settings, client: client, tokens: tokens, stop: stop).run()
        let (cost, generatorCPUSeconds) = await meter.read(since: before)
        return LoadReport(
            result, settings: settings, targets: client.targets.map(\.base), cost: cost,
            generatorCPUSeconds: generatorCPUSeconds)
    }

    private func settings(_ resolved: ConnectionSettings) throws -> LoadSettings {
        guard let container = resolved.container else {
            throw ValidationError("--container is missing; name it, or set ZONEKEEPER_CONTAINER")
        }
        let place = LoadPlace(
            container: container, environment: resolved.environment, database: database, zone: zone)
        return LoadSettings(
            operation: operation, pace: pace.pace, bound: pace.bound, place: place, recordType: type, records: records,
            connections: pace.connectionCount, seed: pace.seed, timeoutSeconds: pace.timeout)
    }

    private func tokens(_ resolved: ConnectionSettings) throws -> LoadTokens {
        guard let apiToken = resolved.apiToken else {
            throw ValidationError(
                "--api-token is missing; make one with `zonekeeper token create --api`, or set ZONEKEEPER_API_TOKEN")
        }
        guard let webAuthToken = resolved.webAuthToken else {
            throw ValidationError(
                "--web-auth-token is missing, and a load writes as a user; make one with `zonekeeper token create --session "
                    + "--user NAME`, or set ZONEKEEPER_WEB_AUTH_TOKEN")
        }
        let secret = try resolved.administratorTokenFile.map { path throws(CommandFailure) in try SecretFile.read(path)
        }
        return LoadTokens(apiToken: apiToken, webAuthToken: webAuthToken, administrator: secret)
    }
}

extension LoadOperation: ExpressibleByArgument {}
