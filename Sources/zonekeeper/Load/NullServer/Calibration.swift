import Histogram

/// What the load tester can do on this machine: the same requests against a server that does nothing.
struct Calibration: Sendable {
    /// Answers a second, with the null server on the same processors.
    let perSecond: Double
    /// What the tester's thread alone could count, had it been busy all the time.
    let threadCapacityPerSecond: Double
    let latencyP50Milliseconds: Double
    let latencyP99Milliseconds: Double

    /// Runs a closed loop of the run's own requests against a null server.
    /// - Parameter seconds: how long.
    static func measure(
        _ settings: LoadSettings, seconds: Double, stop: LoadStop
    ) async throws -> Calibration {
        let server = try await NullServer.start()
        do {
            var settings = settings
            settings.pace = .closed(concurrency: settings.connections)
            settings.bound = LoadBound(seconds: seconds)
            settings.nodes = .even
            let run = LoadRun(
                settings: settings, targets: [try LoadTarget(server.url)],
                sessions: [LoadTokens(apiToken: "none", webAuthToken: "none")], authority: server.authority, stop: stop)
            let result = try await run.run()
            await server.shutdown()
            return Calibration(result)
        } catch {
            await server.shutdown()
            throw error
        }
    }

    init(_ result: LoadResult) {
        let tally = result.measurement.tally
        perSecond = result.seconds > 0 ? Double(tally.succeeded) / result.seconds : 0
        threadCapacityPerSecond = result.testerCPUSeconds > 0 ? Double(tally.succeeded) / result.testerCPUSeconds : 0
        latencyP50Milliseconds = Double(tally.latencies.valueAtPercentile(50)) / 1_000_000
        latencyP99Milliseconds = Double(tally.latencies.valueAtPercentile(99)) / 1_000_000
    }

    var text: String {
        "\(String(perSecond, digits: 0)) answers/s from a null server on this machine, which shares its processors with the tester "
            + "(\(String(threadCapacityPerSecond, digits: 0))/s for each second of the tester's thread); "
            + "median \(String(milliseconds: latencyP50Milliseconds)) ms, p99 \(String(milliseconds: latencyP99Milliseconds)) ms. "
            + "Figures of a cluster mean the cluster up to a fifth of that, \(String(perSecond / 5, digits: 0))/s"
    }
}
