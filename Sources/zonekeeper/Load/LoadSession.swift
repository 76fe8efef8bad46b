import ArgumentParser
import Foundation

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
