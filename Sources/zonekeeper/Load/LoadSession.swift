import ArgumentParser
import Foundation
import NIOHTTP1
import RecordModel
import ServiceClient

/// One call of `zonekeeper load` against a cluster: preparation, the run or the search, and the reports.
struct LoadSession {
    private let command: LoadCommand
    private let settings: LoadSettings
    private let targets: [LoadTarget]
    private let tokens: LoadTokens
    private let authority: String?
    private let client: LoadClient
    private let meterClient: LoadClient
    private let stop: LoadStop

    /// Shares that were lent under the limit before live no longer than this.
    private static let limitSettles = Duration.milliseconds(2_500)

    init(_ command: LoadCommand, stop: LoadStop) throws {
        self.command = command
        self.stop = stop
        let resolved = try command.connection.resolved()
        settings = try command.settings(resolved)
        targets = try LoadTarget.parse(resolved.urls, allowsRemote: command.allowRemote)
        tokens = try command.tokens(resolved)
        authority = resolved.authority
        client = try LoadClient(
            targets: targets, authority: resolved.authority, timeoutSeconds: settings.timeoutSeconds)
        do {
            meterClient = try LoadClient(
                targets: try Self.countedNodes(command, targets), authority: resolved.authority,
                timeoutSeconds: settings.timeoutSeconds)
        } catch {
            client.shutdownNow()
            throw error
        }
    }

    /// The nodes whose counters are read: with --url for some of ZONEKEEPER_URLS all of those, as a write costs each of
    /// them.
    private static func countedNodes(_ command: LoadCommand, _ targets: [LoadTarget]) throws -> [LoadTarget] {
        var others = command.connection
        others.url = []
        let known = try others.resolved().urls
        guard let nodes = try? LoadTarget.parse(known, allowsRemote: command.allowRemote),
            targets.allSatisfy(nodes.contains)
        else { return targets }
        return nodes
    }

    func shutdown() async {
        try? await client.shutdown()
        try? await meterClient.shutdown()
    }

    func run() async throws {
        let preparation = LoadPreparation(settings: settings, client: client, tokens: tokens, stop: stop)
        try await preparation.checkNodes()
        let sessions = command.prepare ? try await preparation.prepare() : [tokens]
        do {
            _ = try await preparation.fill(sessions)
            let outcome = try await limited(try await preparation.withFiles(sessions))
            try outcome()
        } catch {
            await preparation.revoke(sessions)
            throw error
        }
        await preparation.revoke(sessions)
    }

    /// What is left to do when the cluster is as it was before: print, write files, and throw where the run failed.
    private typealias Outcome = () throws -> Void

    /// The run or the search, under the limit that was asked for. The limit is put back before anything is printed: a
    /// reader that is gone or a disk that is full must not leave it behind.
    private func limited(_ sessions: [LoadTokens]) async throws -> Outcome {
        guard !stop.isSet else { throw CommandFailure("stopped before the run began") }
        let change = try await setLimit()
        let outcome: Outcome
        do {
            outcome = command.limits.findLimit ? try await find(sessions) : try await measure(sessions)
        } catch {
            try await change?.putBack(stop: stop)
            throw error
        }
        do {
            try await change?.putBack(stop: stop)
        } catch {
            return {
                do { try outcome() } catch let failure as CommandFailure {
                    Console.error(failure.message)
                }
                throw error
            }
        }
        return outcome
    }

    private func setLimit() async throws -> LimitChange? {
        guard let limit = command.limits.limit else { return nil }
        guard let administrator = tokens.administrator else {
            throw CommandFailure(
                "--limit changes the container's limits and needs the administrator's token: give --admin-token-file "
                    + "or set ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
        var change = LimitChange(client: client, administrator: administrator, container: settings.place.container)
        try await change.set(limit, for: settings.mix, stop: stop)
        await stop.sleep(for: Self.limitSettles)
        return change
    }

    private func measure(_ sessions: [LoadTokens]) async throws -> Outcome {
        let meter = LoadMeter(client: meterClient, administrator: tokens.administrator)
        let before = await meter.read()
        let expectation = command.limits.expectation
        let view = LiveView(
            mode: LiveView.mode(isQuiet: command.quiet, printsJSON: command.connection.json), settings: settings,
            limit: expectation.limit)
        let run = LoadRun(settings: settings, targets: targets, sessions: sessions, authority: authority, stop: stop)
        let result = try await run.run { await view.watch($0) }
        let (cost, generatorCPUSeconds) = await meter.read(since: before)
        let report = LoadReport(
            result, settings: settings, targets: targets.map(\.base), cost: cost,
            generatorCPUSeconds: generatorCPUSeconds, expectation: expectation)
        return {
            // What is printed is not lost with a disk that is full.
            Console.print(command.connection.json ? report.json : Array(report.text.utf8))
            for file in command.files { try file.write(report) }
            if let verdict = report.verdict, verdict.exitCode != 0 { throw ExitCode(verdict.exitCode) }
            if report.succeeded == 0 { throw ExitCode(1) }
        }
    }

    private func find(_ sessions: [LoadTokens]) async throws -> Outcome {
        let finder = LimitFinder(
            settings: settings, targets: targets, sessions: sessions, authority: authority, stop: stop,
            seconds: command.pace.duration, first: command.pace.rate?.perSecond ?? 10,
            tolerance: command.limits.searchTolerance)
        let found = try await finder.find { trial in
            if !command.quiet { Console.note(trial.text) }
        }
        return {
            Console.print(command.connection.json ? found.json : Array(found.text.utf8))
            if found.search.passed == nil, found.search.limit == nil { throw ExitCode(1) }
        }
    }
}

/// Sets a container's rate limit for a run, and puts back what was there.
///
/// Either goes on for a while and by any node: a run may well end while a node is down or a group elects its leader.
struct LimitChange: Sendable {
    let client: LoadClient
    let administrator: String
    let container: String
    var patience = Duration.seconds(15)
    var pause = Duration.milliseconds(500)
    /// What was set for the container itself before; null where it had the cluster's value.
    private(set) var before: [JSONValue.Member] = []

    private var path: String { "/admin/1/limits?container=\(PercentCoding.encode(container))" }

    /// Sets the limits so that the container is held to `perSecond`, however many users it has.
    /// - Parameters:
    ///   - mix: says whether the limit on records or that on preferences is meant; both where it has both.
    ///   - stop: is told what to do by hand should the process end before `putBack`.
    /// - Throws: `CommandFailure` if the limits cannot be read or set. Where it is not known whether they were set,
    ///   what was there was put back; where that failed too, the error says what to set by hand.
    mutating func set(_ perSecond: Int, for mix: LoadMix, stop: LoadStop) async throws(CommandFailure) {
        let answer = try await ask(.GET, body: [], "read")
        guard let limits = (try? answer.parsed())?["limits"]?.array else {
            throw CommandFailure("the limits of \(container) cannot be read: the answer has none")
        }
        var names: [ContainerLimit] = []
        if mix.hasRecords { names += [.requestsPerSecond, .requestsPer100kUsers] }
        if mix.hasKeyValues { names += [.keyValueRequestsPerSecond, .keyValueRequestsPer100kUsers] }
        before = names.map { JSONValue.Member($0.rawValue, Self.override(of: $0, in: limits)) }
        let growth: [ContainerLimit] = [.requestsPer100kUsers, .keyValueRequestsPer100kUsers]
        let members = names.map {
            JSONValue.Member($0.rawValue, .integer(growth.contains($0) ? 0 : Int64(perSecond)))
        }
        stop.exitNotice = "the limit that was set is still in force; \(byHand)"
        do {
            _ = try await ask(.PATCH, body: JSONValue.object(members).serialized(), "set")
        } catch {
            // The change may have been made though its answer never came.
            if error.isOutcomeUnknown { try await putBack(stop: stop) }
            stop.exitNotice = nil
            throw error
        }
    }

    /// What was set for the container itself, from an answer of `GET limits`; null where nothing was.
    static func override(of limit: ContainerLimit, in limits: [JSONValue]) -> JSONValue {
        guard let entry = limits.first(where: { $0["name"]?.string == limit.rawValue }),
            entry["source"]?.string == "container"
        else { return .null }
        return entry["value"] ?? .null
    }

    /// - Throws: `CommandFailure` that says what to set by hand.
    func putBack(stop: LoadStop) async throws(CommandFailure) {
        do {
            _ = try await ask(.PATCH, body: JSONValue.object(before).serialized(), "put back")
        } catch {
            throw CommandFailure("\(error.message); \(byHand)")
        }
        stop.exitNotice = nil
    }

    private var byHand: String {
        let values = before.map { "\($0.key)=\($0.value.isNull ? "default" : $0.value.plainText)" }
        return "put the limits of \(container) back with `zonekeeper limits set --container \(container)`: "
            + values.joined(separator: " ")
    }

    /// Asks one node after the other until one does it, every node at least once. Setting limits twice is the same as
    /// once.
    /// - Throws: `CommandFailure`, whose outcome is known where a node refused for good: then nothing was changed.
    private func ask(
        _ method: HTTPMethod, body: [UInt8], _ what: String
    ) async throws(CommandFailure) -> ServiceResponse {
        let clock = ContinuousClock()
        let end = clock.now + patience
        while true {
            var problem = ""
            for target in client.targets.indices {
                let answer: ServiceResponse
                do {
                    answer = try await client.exchange(method, path, target: target, bearer: administrator, body: body)
                } catch {
                    problem = error.message
                    continue
                }
                if answer.status == 200 { return answer }
                problem = LoadPreparation.failure(answer)
                if answer.status != 429, answer.status < 500 {
                    throw CommandFailure("the limits of \(container) cannot be \(what): \(problem)")
                }
            }
            guard clock.now < end else {
                throw CommandFailure("the limits of \(container) cannot be \(what): \(problem)", isOutcomeUnknown: true)
            }
            try? await Task.sleep(for: pause)
        }
    }
}
