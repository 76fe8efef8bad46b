import RecordModel
import Testing

@testable import zonekeeper

extension LoadMeasurement {
    /// An answer that came as long after the start as it took.
    fileprivate mutating func record(_ outcome: LoadOutcome, nanoseconds: UInt64) {
        let ended = min(nanoseconds, 3_600_000_000_000)
        record(
            LoadAttempt(
                outcome: outcome, behaviour: 0, target: 0, operation: 0, firstDue: 0, due: 0, ended: ended,
                isExactRetry: false, isTriedAgain: false))
    }
}

@Suite("Load: what answers count as, and what a run comes to")
struct LoadReportTests {
    private static let proof = BytePattern("\"recordChangeTag\"")

    private func judge(_ status: Int, _ body: String) -> LoadOutcome {
        Array(body.utf8).withUnsafeBytes { LoadAnswer.judge(status: status, body: $0, proof: Self.proof) }
    }

    @Test("an answer counts as a success only if it has status 200, no error code, and what it was asked for")
    func judging() {
        #expect(judge(200, #"{"records":[{"recordName":"a","recordChangeTag":"1"}]}"#) == .succeeded)
        #expect(
            judge(200, #"{"records":[{"recordName":"a","reason":"no \"a\"","serverErrorCode":"NOT_FOUND"}]}"#)
                == .failed(status: 200, code: "NOT_FOUND", reason: #"no \"a\""#))
        #expect(
            judge(503, #"{"uuid":"u","serverErrorCode": "TRY_AGAIN_LATER"}"#)
                == .failed(status: 503, code: "TRY_AGAIN_LATER", reason: nil))
        #expect(judge(502, "Bad gateway") == .failed(status: 502, code: nil, reason: nil))
        let empty = LoadOutcome.failed(status: 200, code: LoadAnswer.emptyAnswer, reason: nil)
        #expect(judge(200, #"{"records":[]}"#) == empty)
        #expect(judge(200, "") == empty)
        #expect(judge(200, #"{"serverErrorCode":"#) == .failed(status: 200, code: nil, reason: nil))
        #expect(
            LoadAnswer.judge(status: 200, body: UnsafeRawBufferPointer(start: nil, count: 0), proof: nil) == .succeeded)
    }

    @Test("a pattern is found wherever a plain search finds it")
    func patterns() {
        var random = LoadRandom(seed: 3)
        for _ in 0..<2_000 {
            // Two letters only, so that there are many near misses.
            let text = (0..<random.below(24)).map { _ in random.below(2) == 0 ? "a" : "b" }.joined()
            let pattern = (0...random.below(5)).map { _ in random.below(2) == 0 ? "a" : "b" }.joined()
            let found = Array(text.utf8).withUnsafeBytes { BytePattern(pattern).firstMatch(in: $0) }
            let naive = text.utf8.indices.map { text.utf8[$0...] }.firstIndex { $0.starts(with: pattern.utf8) }
            #expect(found == naive, "'\(pattern)' in '\(text)'")
        }
    }

    private func settings(_ pace: LoadPace) -> LoadSettings {
        let place = LoadPlace(
            container: "iCloud.com.example.load", environment: "development", database: "public",
            zones: [LoadPlace.defaultZone])
        return LoadSettings(mix: LoadMix(.create), pace: pace, bound: LoadBound(), place: place, connections: 4)
    }

    private func report(
        _ measurement: LoadMeasurement, _ pace: LoadPace, cost: LoadReport.Cost = .unknown("no token")
    ) -> LoadReport {
        LoadReport(
            LoadResult(measurement: measurement, seconds: 4, wasInterrupted: false, testerCPUSeconds: 0.25),
            settings: settings(pace), targets: ["https://127.0.0.1:24001"], cost: cost, generatorCPUSeconds: 0.5)
    }

    private func measurement() -> LoadMeasurement { LoadMeasurement(behaviours: 1, targets: 1, operations: 1) }

    @Test("percentiles are those of the successes, and errors are counted by code, status and transport")
    func percentiles() throws {
        var tally = measurement()
        for milliseconds in 1...1_000 { tally.record(.succeeded, nanoseconds: UInt64(milliseconds) * 1_000_000) }
        for _ in 0..<3 {
            tally.record(.failed(status: 503, code: "TRY_AGAIN_LATER", reason: "no leader"), nanoseconds: 5_000_000_000)
        }
        tally.record(.failed(status: 200, code: "CONFLICT", reason: nil), nanoseconds: 1_000)
        tally.record(.failed(status: 500, code: nil, reason: nil), nanoseconds: 1_000)
        for _ in 0..<2 { tally.record(.unanswered("deadlineExceeded"), nanoseconds: 10_000_000_000) }
        tally.countNotIssued()
        let report = report(tally, .open(rate: 250, spacing: .even, outstandingMax: 10))
        #expect(report.succeeded == 1_000)
        #expect(report.failed == 5)
        #expect(report.unanswered == 2)
        #expect(report.notIssued == 1)
        #expect(report.operationsPerSecond == 250)
        let latency = try #require(report.latency)
        for (value, exact) in [
            (latency.values[0], 500.0), (latency.values[1], 900), (latency.values[2], 990), (latency.values[3], 999),
            (latency.values[4], 1_000), (latency.values[5], 500.5),
        ] { #expect(abs(value / exact - 1) < 0.002, "\(value) for \(exact)") }
        #expect(report.errorsByCode.map(\.code) == ["TRY_AGAIN_LATER", LoadTally.noCode, "CONFLICT"])
        #expect(report.errorsByCode.map(\.count) == [3, 1, 1])
        #expect(report.errorsByCode.map(\.reason) == ["no leader", nil, nil])
        #expect(report.errorsByStatus.map(\.status) == [503, 200, 500])
        #expect(report.errorsByTransport.map(\.reason) == ["deadlineExceeded"])
        #expect(report.failureLatency?.count == 7)
        #expect(report.correctedLatency == nil, "an open loop has nothing to correct")
    }

    @Test("a stall of a closed loop shows in the corrected times, as the requests that it kept back")
    func correction() throws {
        var tally = measurement()
        for _ in 0..<1_000 { tally.record(.succeeded, nanoseconds: 1_000_000) }
        tally.record(.succeeded, nanoseconds: 1_000_000_000)
        let report = report(tally, .closed(concurrency: 4))
        let measured = try #require(report.latency)
        let corrected = try #require(report.correctedLatency)
        #expect(measured.p99 < 1.01)
        // One request a millisecond through the second of the stall: half of all wait for 0 to 1,000 ms.
        #expect((1_950...2_050).contains(corrected.count))
        #expect((950...1_001).contains(corrected.p99))
        #expect((780...820).contains(corrected.values[1]))
    }

    @Test("times beyond an hour and of nothing are kept in range, not dropped")
    func extremes() throws {
        var tally = measurement()
        tally.record(.succeeded, nanoseconds: 0)
        tally.record(.succeeded, nanoseconds: .max)
        #expect(tally.tally.succeeded == 2)
        #expect(report(measurement(), .closed(concurrency: 1)).latency == nil)
    }

    private static let metrics = """
        # TYPE zonekeeper_log_syncs_total counter
        zonekeeper_log_syncs_total 1200
        zonekeeper_log_written_bytes_total 5000000
        zonekeeper_log_appends_total 9
        zonekeeper_cpu_seconds_total 12.5
        zonekeeper_requests_total{route="records",status="200"} 77

        """

    @Test("the nodes' counters are read from the Prometheus text, and are nothing where one is missing")
    func counters() throws {
        let counters = try #require(NodeCounters(metrics: Self.metrics))
        #expect(counters == NodeCounters(logSyncs: 1_200, logBytesWritten: 5_000_000, cpuSeconds: 12.5))
        #expect(NodeCounters(metrics: "zonekeeper_log_syncs_total 1200\n") == nil)
        #expect(NodeCounters(metrics: Self.metrics.replacing("12.5", with: "NaN")) == nil)
    }

    @Test("costs are summed over the nodes and shared out by 1,000 successes")
    func costs() throws {
        let before = [
            NodeCounters(logSyncs: 100, logBytesWritten: 1_000, cpuSeconds: 1),
            NodeCounters(logSyncs: 200, logBytesWritten: 2_000, cpuSeconds: 2),
        ]
        var after = before
        after[0].logSyncs += 50
        after[0].cpuSeconds += 1.5
        after[1].logSyncs += 10
        after[1].logBytesWritten += 4_000
        let cost = try #require(NodeCounters.spent(before: before, after: after))
        #expect(cost.logSyncs == 60)
        #expect(NodeCounters.per1000(cost.logSyncs, operations: 2_000) == 30)
        #expect(NodeCounters.per1000(cost.logBytesWritten, operations: 500) == 8_000)
        #expect(NodeCounters.per1000(cost.cpuSeconds, operations: 1_500) == 1)
        #expect(NodeCounters.per1000(1, operations: 0) == nil)
        #expect(NodeCounters.spent(before: after, after: before) == nil, "a node that starts anew counts from 0")
    }

    @Test("the report for programs is JSON with every figure")
    func json() throws {
        var tally = measurement()
        for _ in 0..<2_000 { tally.record(.succeeded, nanoseconds: 2_000_000) }
        tally.record(.failed(status: 409, code: "CONFLICT", reason: nil), nanoseconds: 1)
        var cost = try #require(NodeCounters.spent(before: [], after: []))
        cost.logSyncs = 500
        let json = try JSONParser.parse(report(tally, .closed(concurrency: 3), cost: .measured(cost, nodes: 3)).json)
        #expect(json["succeeded"] == .integer(2_000))
        #expect(json["loop"]?.string == "closed")
        #expect(json["errors"]?["byCode"]?["CONFLICT"] == .integer(1))
        #expect(json["errors"]?["byStatus"]?["409"] == .integer(1))
        guard case .number(let p999)? = json["latencyMilliseconds"]?["p99.9"] else {
            Issue.record("no p99.9 in \(json)")
            return
        }
        #expect(abs(p999 - 2) < 0.01)
        #expect(number(json["per1000Operations"]?["logSyncs"]) == 250)
        #expect(number(json["per1000Operations"]?["generatorCPUSeconds"]) == 0.25)
    }

    private func number(_ json: JSONValue?) -> Double? {
        switch json {
        case .integer(let value)?: Double(value)
        case .number(let value)?: value
        default: nil
        }
    }

    @Test("the report for people names the pace, the rate reached, and why costs are not known")
    func text() {
        var tally = measurement()
        for _ in 0..<400 { tally.record(.succeeded, nanoseconds: 2_000_000) }
        let text = report(tally, .open(rate: 100, spacing: .poisson, outstandingMax: 10)).text
        #expect(text.contains("open loop, 100.0/s poisson, seed 1"))
        #expect(text.contains("400 succeeded in 4.00 s: 100.0/s; 0 failed, 0 unanswered, 0 not issued"))
        #expect(text.contains("not known: no token"))
    }

    @Test("bodies are what the server's own parsers take, and the same for the same seed")
    func bodies() throws {
        let records = LoadRecords(type: "Load", zone: "Load")
        let created = try ModifyRecordsRequest(body: records.create(named: Array(0..<200)))
        #expect(created.operations.count == 200)
        #expect(created.operations.last?.recordName == "load-0000000199")
        #expect(created.zoneID.name == "Load")
        #expect(try ModifyRecordsRequest(body: records.create(5)).operations.first?.recordName == nil)
        #expect(try LookupRecordsRequest(body: records.lookup([3])).records.first?.recordName == "load-0000000003")
        let query = try QueryRecordsRequest(body: records.query(from: 10, count: 20))
        #expect(query.resultsLimit == 50)
        let schema = try SchemaParser.parse(LoadRecords.schema(type: "Load"))
        let type = try #require(schema.type(named: "Load"))
        _ = try query.query.resolve(schema: type, zone: query.zoneID, container: "c")
        #expect((190...200).contains(LoadRecords.note(77).utf8.count))
        #expect(LoadRecords.note(1) != LoadRecords.note(2))
    }

    @Test("reads name only records that the preparation makes", arguments: [1, 7, 10_000])
    func readsInRange(records: Int) throws {
        var settings = settings(.closed(concurrency: 1))
        settings.records = records
        let bodies = LoadBodies(.read, of: settings).ring
        for number in 0..<500 {
            let name = try LookupRecordsRequest(body: bodies[number].bytes).records[0].recordName
            #expect(Int(name.dropFirst("load-".count)).map { (0..<records).contains($0) } == true)
        }
        let again = LoadBodies(.read, of: settings).ring
        #expect(bodies == again)
    }
}
