import ArgumentParser
import Foundation
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Load: the files that a run's results go to")
struct LoadFilesTests {
    private static let second: UInt64 = 1_000_000_000

    /// Two seconds at 4/s, and again for each round: the first second accepts two, the second one. That is 1.5/s.
    private func report(
        container: String = "iCloud.com.example.load", rounds: Int = 1, limit: Double = 1.5
    ) -> LoadReport {
        var measurement = LoadMeasurement(behaviours: 1, targets: 1, operations: 1)
        for index in 0..<8 * rounds {
            let number = index % 8
            let time = UInt64(index) * Self.second / 4
            measurement.recordSubmitted(due: time, now: time, countsLateness: true)
            measurement.recordSent(due: time, submitted: time, now: time, isExactRetry: false)
            let outcome: LoadOutcome =
                [0, 1, 4].contains(number)
                ? .succeeded
                : number == 7
                    ? .failed(status: 500, code: "INTERNAL_ERROR", reason: "<b>&\"")
                    : .throttled(status: 429, retryAfter: 250_000_000)
            measurement.record(
                LoadAttempt(
                    outcome: outcome, behaviour: 0, target: 0, operation: 0, firstDue: time, due: time, sent: time,
                    ended: time + 1_000_000, isExactRetry: false, isTriedAgain: false))
        }
        measurement.finish(at: UInt64(2 * rounds) * Self.second - 1)
        let place = LoadPlace(
            container: container, environment: "development", database: "public", zones: [LoadPlace.defaultZone])
        let settings = LoadSettings(
            mix: LoadMix(.create), pace: .open(rate: 4, spacing: .even, outstandingMax: 16),
            bound: LoadBound(seconds: Double(2 * rounds)), place: place, connections: 4)
        return LoadReport(
            LoadResult(
                measurement: measurement, seconds: Double(2 * rounds), wasInterrupted: false, testerCPUSeconds: 0.01),
            settings: settings, targets: ["https://127.0.0.1:24001"], cost: .unknown("no token"),
            generatorCPUSeconds: 0.02, expectation: .init(limit: limit, tolerance: 0.02))
    }

    @Test("CSV has one line for each second under a line of names")
    func csv() {
        #expect(
            report().csv
                == "second,due,sent,accepted,throttled,failed,unanswered,p50,p90,p99,max\r\n"
                + "0,4.00,4,2,2,0,0,1.000,1.000,1.000,1.000\r\n" + "1,4.00,4,1,2,1,0,1.000,1.000,1.000,1.000\r\n")
    }

    @Test("JSON keeps the members that programs know and has the new ones after them")
    func json() throws {
        guard case .object(let members) = try JSONParser.parse(report().json) else {
            Issue.record("not an object")
            return
        }
        #expect(
            members.map(\.key) == [
                "operation", "loop", "rate", "profile", "arrivals", "outstandingMax", "connections", "seed",
                "container",
                "environment", "database", "zone", "zones", "recordType", "users", "nodePattern", "targets", "seconds",
                "interrupted", "succeeded", "failed", "throttled", "unanswered", "notIssued", "operationsPerSecond",
                "latencyMilliseconds", "failureLatencyMilliseconds", "generatorLatenessMilliseconds", "errors",
                "per1000Operations", "limit", "verdict", "verdictReason", "retryAfter", "clients", "operations",
                "nodes",
                "tester", "timeline", "summary",
            ])
        let json = JSONValue.object(members)
        #expect(json["failed"] == .integer(5) && json["throttled"] == .integer(4))
        #expect(json["verdict"]?.string == "unknown", "two seconds, of which one may be saved up, tell nothing")
        #expect(json["verdictReason"]?.string?.contains("10 s are enough") == true)
        for (limit, name) in [(1.5, "kept"), (1.2, "missed"), (1.8, "missed")] {
            let judged = try JSONParser.parse(report(rounds: 100, limit: limit).json)
            #expect(judged["verdict"]?.string == name, "\(limit)/s")
        }
        #expect(json["limit"]?["accepted"] == .integer(3) && json["limit"]?["source"]?.string == "given")
        #expect(json["retryAfter"]?["refusals"] == .integer(4))
        #expect(json["timeline"]?.array?.count == 2)
        #expect(json["clients"]?.array?.first?["name"]?.string == "ignore")
    }

    @Test("the page stands alone: no script, no address to load from, charts as SVG, and text escaped")
    func html() {
        let page = report(container: "<script>alert('x')</script>").html(date: "2026-01-31T12:00:00Z")
        #expect(page.hasPrefix("<!doctype html>"))
        for wrong in ["<script", "http://", "src=", "href=", "url(", "@import", "<b>&\""] {
            #expect(!page.contains(wrong), "\(wrong)")
        }
        #expect(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"))
        #expect(page.contains("default-src 'none'"))
        #expect(page.components(separatedBy: "<figure>").count - 1 == 3)
        for tag in ["svg", "table", "figure", "ul", "div", "main", "html", "p", "tr"] {
            let opened =
                page.components(separatedBy: "<\(tag) ").count + page.components(separatedBy: "<\(tag)>").count - 2
            #expect(opened == page.components(separatedBy: "</\(tag)>").count - 1, "\(tag)")
        }
        #expect(page.contains("limit not judged"))
        #expect(report(rounds: 100, limit: 1.2).html(date: "d").contains("limit not kept"))
        #expect(report(rounds: 100).html(date: "d").contains("limit kept"))
        #expect(!page.contains("NaN") && !page.contains(">nan") && !page.contains(">inf"))
    }

    @Test("a chart's axis ends at a round number, gaps stay gaps, and a long run is drawn with few points")
    func chart() {
        #expect([0.0, 0.3, 1, 1.1, 37, 41, 99, 4_001].map(LineChart.axisTop) == [1, 0.4, 1, 2, 40, 50, 100, 5_000])
        let gaps = LineChart(title: "t", unit: "u", lines: [.init(name: "n", style: "c1", values: [1, nil, 2, 3])]).svg
        #expect(gaps.components(separatedBy: "M").count - 1 == 3, "two pieces, and the key of the legend")
        let long = LineChart(
            title: "t", unit: "u", lines: [.init(name: "n", style: "c1", values: (0..<86_400).map { Double($0 % 7) })]
        ).svg
        #expect(long.utf8.count < 12_000)
    }

    @Test("the summary says where the limit is, how exactly it was kept, and what clients got that ignore it")
    func sentences() {
        let text = report().sentences.joined(separator: "\n")
        #expect(text.contains("The limit is 1.50 requests a second (given)"))
        #expect(text.contains("limit x time"))
        #expect(text.contains("Whether the limit was kept is not known: 1.8 s under pressure are too few"))
        #expect(
            report(rounds: 100, limit: 1.2).sentences.contains {
                $0.hasPrefix("The limit was NOT kept: 300 were accepted, and limit x (time + 1 s) is 24")
            })
        #expect(
            report(rounds: 100, limit: 1.8).sentences.contains {
                $0.hasPrefix("The limit was NOT kept: accepted was -16")
            })
        #expect(report(rounds: 100).sentences.contains("The limit was kept."))
        #expect(text.contains("retryAfter came with 4 of 4 refusals: 250 ms in the median"))
        #expect(text.contains("Clients that ignore it got 3 of 8 requests through (37.5 %)"))
    }

    @Test("an axis says each of its steps in full")
    func labels() {
        let labels = [50.0, 5, 100, 10, 2, 1, 50_000, 0.4].map { top in
            (0...4).map { LineChart.label(top * Double($0) / 4, top: top) }
        }
        #expect(labels[0] == ["0.0", "12.5", "25.0", "37.5", "50.0"])
        #expect(labels[1] == ["0.00", "1.25", "2.50", "3.75", "5.00"])
        #expect(labels[2] == ["0", "25", "50", "75", "100"])
        #expect(labels[3] == ["0.0", "2.5", "5.0", "7.5", "10.0"])
        #expect(labels[4] == ["0.0", "0.5", "1.0", "1.5", "2.0"])
        #expect(labels[5] == ["0.00", "0.25", "0.50", "0.75", "1.00"])
        #expect(labels[6] == ["0.0k", "12.5k", "25.0k", "37.5k", "50.0k"])
        #expect(labels[7] == ["0.0", "0.1", "0.2", "0.3", "0.4"])
    }

    @Test("a time from a second on is told in seconds, and no card breaks its figure")
    func times() {
        #expect(
            String(time: 10_217) == "10.22 s" && String(time: 12.5) == "12.5 ms" && String(time: nil) == "-")
        #expect(
            report().html(date: "d").contains(
                ".card b{display:block;font-size:19px;font-variant-numeric:tabular-nums;white-space:nowrap}"))
    }

    @Test("a report of an earlier run stays until the new one is whole, and a check makes no file")
    func draft() throws {
        let folder = NSTemporaryDirectory() + "zonekeeper-load-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = try #require(ReportFile(argument: folder + "/run.json"))
        try file.check()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        try Data("old".utf8).write(to: URL(fileURLWithPath: file.path))
        try file.check()
        #expect(try String(contentsOfFile: file.path, encoding: .utf8) == "old")
        try file.write(report())
        #expect(try JSONParser.parse(Array(Data(contentsOf: URL(fileURLWithPath: file.path))))["verdict"] != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["run.json"])
        try FileManager.default.createDirectory(atPath: folder + "/run.csv.draft", withIntermediateDirectories: true)
        #expect(throws: CommandFailure.self) { try ReportFile(argument: folder + "/run.csv")?.check() }
    }

    @Test("a session's file in the environment counts as with other commands, unless an option names a session")
    func sessionFile() throws {
        let path = NSTemporaryDirectory() + "zonekeeper-load-\(UUID().uuidString)"
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data("from-file\n".utf8), attributes: [.posixPermissions: 0o600]))
        defer { try? FileManager.default.removeItem(atPath: path) }
        func token(_ arguments: [String]) throws -> String? {
            let command = try LoadCommand.parse(["--container", "c"] + arguments)
            var resolved = try command.connection.resolved(["ZONEKEEPER_API_TOKEN": "a"])
            resolved.administratorTokenFile = nil
            return try command.tokens(resolved, ["ZONEKEEPER_WEB_AUTH_TOKEN_FILE": path]).webAuthToken
        }
        #expect(try token([]) == "from-file")
        let other = path + "-other"
        #expect(
            FileManager.default.createFile(
                atPath: other, contents: Data("other\n".utf8), attributes: [.posixPermissions: 0o600]))
        defer { try? FileManager.default.removeItem(atPath: other) }
        #expect(try token(["--web-auth-token-file", other]) == "other")
    }

    @Test(
        "what one run cannot say is refused before it",
        arguments: [
            "--mix create:1,kv-set:1 --limit 40", "--mix create:1,kv-set:1 --expect-limit 40",
            "--mix create:1,kv-set:1 --find-limit", "--find-limit --output a.json", "--calibrate --report a.html",
        ])
    func refused(arguments: String) {
        #expect((try? LoadCommand.parse(arguments.split(separator: " ").map(String.init))) == nil)
    }

    @Test("a search runs on as many connections as an open loop")
    func connections() throws {
        let variables = ["ZONEKEEPER_CONTAINER": "c"]
        let command = try LoadCommand.parse(["--find-limit"])
        #expect(try command.settings(command.connection.resolved(variables)).connections == 64)
        let closed = try LoadCommand.parse(["--concurrency", "5"])
        #expect(try closed.settings(closed.connection.resolved(variables)).connections == 5)
    }
}
