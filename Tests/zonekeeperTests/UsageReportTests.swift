import ArgumentParser
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

@Suite("What a container uses")
struct UsageReportTests {
    /// As the server answers, with what a recount came to.
    private static func answer(_ recount: String = "", zone: String = "") throws -> JSONValue {
        let text = """
            {"container":"c","environment":"production","databases":[
             {"environment":"production","scope":"public","bytes":85000000,"records":12345,"allottedBytes":9,
              "limitBytes":100000000,"limitRecords":9223372036854775807,
              "warning":"80 % or more of the bytes that are allowed are used",
              "zones":[{"name":"_defaultZone","bytes":85000000,"records":12345\(zone)}]\(recount)},
             {"environment":"production","scope":"private","user":"ada","userRecordName":"_a","bytes":1,"records":1,
              "allottedBytes":1,"limitBytes":9223372036854775807,"limitRecords":9223372036854775807,"zones":[],
              "recount":{"bytes":1,"records":1,"isEqual":true}}],
             "transfer":{"month":202611,"bytes":1999999999,"limitBytes":2000000000,
              "warning":"90 % or more of the bytes that are allowed are used"}}
            """
        return try JSONParser.parse(Array(text.utf8))
    }

    private static let right = #","recount":{"bytes":85000000,"records":12345,"isEqual":true}"#

    private func report(
        _ recount: String = "", zone: String = Self.right, isVerified: Bool = false, showsZones: Bool = false
    ) throws -> UsageReport {
        UsageReport([try Self.answer(recount, zone: zone)], isVerified: isVerified, showsZones: showsZones)
    }

    @Test("Databases are shown with their share of the limit, cut and not rounded, and what is nearly full is said")
    func shown() throws {
        let report = try report()
        #expect(
            report.text == """
                container c

                ENVIRONMENT  DATABASE  USER  RECORDS  BYTES   LIMIT      USED  ASSETS   LIMIT  USED
                production   public          12,345   85 MB   100 MB     85 %  0 bytes
                production   private   ada   1        1 byte  unlimited        0 bytes

                transfer in production, 2026-11: 1.9 GB of 2 GB (99 %)
                """)
        #expect(
            report.warnings == [
                "production public: 80 % or more of the bytes that are allowed are used",
                "production transfer in 2026-11: 90 % or more of the bytes that are allowed are used",
            ])
        #expect(report.differences.isEmpty)
    }

    @Test("Assets are shown with their share of the limit, and a recount that differs in them alone says so")
    func assets() throws {
        let text = """
            {"container":"c","environment":"production","databases":[
             {"environment":"production","scope":"public","bytes":50,"records":2,"assetBytes":3000000,
              "limitBytes":100,"limitAssetBytes":10000000,"zones":[],
              "recount":{"bytes":50,"records":2,"assetBytes":2000000,"isEqual":false}}]}
            """
        let report = UsageReport([try JSONParser.parse(Array(text.utf8))], isVerified: true, showsZones: false)
        #expect(report.text.contains("50 bytes  100 bytes  50 %  3 MB    10 MB  30 %"), "\(report.text)")
        #expect(
            report.differences == [
                "production public: the counters say 2 records with 50 bytes and 3000000 of assets, the records "
                    + "2 records with 50 bytes and 2000000 of assets"
            ])
    }

    @Test("Zones are shown where that is asked for")
    func zones() throws {
        #expect(
            try report(showsZones: true).text.contains(
                """
                ENVIRONMENT  DATABASE  USER  ZONE          RECORDS  BYTES
                production   public          _defaultZone  12,345   85 MB
                """))
    }

    @Test(
        "A recount that differs is told to the byte, even where the answer calls it equal; a missing one is told too",
        arguments: [
            (#","recount":{"bytes":85000000,"records":12345,"isEqual":true}"#, nil),
            (
                #","recount":{"bytes":85000001,"records":12345,"isEqual":true}"#,
                "the counters say 12345 records with 85000000 bytes, the records 12345 records with 85000001 bytes"
            ),
            (
                #","recount":{"bytes":85000000,"records":12345,"isEqual":false}"#,
                "the sum is right, but not each counter in it"
            ),
            ("", "was not counted again"),
        ] as [(String, String?)])
    func verified(recount: String, difference: String?) throws {
        let report = try report(recount, isVerified: true)
        guard let difference else {
            #expect(report.differences.isEmpty)
            return #expect(report.text.hasSuffix("counted again: 2 databases are right to the byte"))
        }
        #expect(report.differences.count == 1)
        #expect(report.differences.first?.hasPrefix("production public: \(difference)") == true)
        #expect(!report.text.contains("counted again"))
    }

    @Test("A zone that differs is told, also where the whole database's numbers do not")
    func zoneDifferences() throws {
        let zone = #","recount":{"bytes":85000000,"records":12344,"isEqual":false}"#
        #expect(
            try report(Self.right, zone: zone, isVerified: true).differences == [
                "production public, zone _defaultZone: the counters say 12345 records with 85000000 bytes, the records "
                    + "12344 records with 85000000 bytes"
            ])
        #expect(
            try report(Self.right, zone: "", isVerified: true).differences == [
                "production public, zone _defaultZone: was not counted again"
            ])
    }
}

@Suite("Usage over pages and environments")
struct UsagePagesTests {
    private static func database(
        _ owner: String, _ zones: String, bytes: Int = 10, recount: Int = 10, isEqual: Bool = true
    ) -> String {
        """
        {"environment":"development","scope":"private","userRecordName":"\(owner)","bytes":\(bytes),"records":2,
         "allottedBytes":9,"limitBytes":100,"limitRecords":100,
         "zones":[{"name":"\(zones)","bytes":1,"records":1,"recount":{"bytes":1,"records":1,"isEqual":true}}],
         "recount":{"bytes":\(recount),"records":2,"isEqual":\(isEqual)}}
        """
    }

    private static func page(_ databases: [String], next: String? = nil, environment: String = "development") -> String
    {
        """
        {"container":"c","environment":"\(environment)","databases":[\(databases.joined(separator: ","))]
         \(next.map { #","next":"\#($0)""# } ?? ""),"transfer":{"month":202611,"bytes":1,"limitBytes":2000}}
        """
    }

    @Test("A database that goes on over pages is one, and a fault in a later part is its fault")
    func merged() throws {
        var pages = UsagePages()
        for text in [
            Self.page([Self.database("_a", "x"), Self.database("_b", "a")], next: "private/_b/a"),
            // Meanwhile it has grown, and what was counted anew of the later zones is 3 bytes too many.
            Self.page([Self.database("_b", "b", bytes: 20, recount: 23, isEqual: false)], next: "private/_b/b"),
            Self.page([Self.database("_b", "c", bytes: 20, recount: 20), Self.database("_c", "d")]),
        ] { pages.add(try JSONParser.parse(Array(text.utf8))) }
        let databases = pages.whole["databases"]?.array ?? []
        #expect(databases.map { $0.text("userRecordName") } == ["_a", "_b", "_c"])
        #expect(databases[1]["zones"]?.array?.map { $0.text("name") } == ["a", "b", "c"])
        #expect(databases[1].amount("bytes") == 10)
        #expect(databases[1]["recount"]?.amount("bytes") == 13)
        #expect(databases[1]["recount"]?["isEqual"] == .bool(false))
        #expect(pages.whole["next"] == nil)
        let report = UsageReport([pages.whole], isVerified: true, showsZones: true)
        #expect(
            report.differences == [
                "development private _b: the counters say 2 records with 10 bytes, the records 2 records with 13 bytes"
            ])
    }

    /// Runs the command against a server, and says what it was asked.
    private func run(
        _ arguments: [String], _ answer: @escaping @Sendable (ScriptedRequest, Int) -> ScriptedAnswer
    ) async throws -> (requests: [ScriptedRequest], failed: Bool) {
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            return try await ScriptedServer.running(answer) { server in
                let place = ["--url", server.url, "--container", "c", "--admin-token-file", secret]
                let command = try UsageCommand.parse(arguments + place)
                do {
                    try await command.run()
                    return (server.requests, false)
                } catch is ExitCode {
                    return (server.requests, true)
                }
            }
        }
    }

    @Test("Both environments are asked for, page after page; a fault on the last page of production fails the command")
    func command() async throws {
        for isRight in [true, false] {
            let (requests, failed) = try await run(["--verify"]) { request, _ in
                let environment = request.parameter("environment") ?? ""
                switch (environment, request.parameter("after")) {
                case ("production", nil):
                    return ScriptedAnswer(
                        body: Self.page([Self.database("_a", "x")], next: "private/_a", environment: environment))
                case ("production", _):
                    let last = Self.database("_b", "x", recount: isRight ? 10 : 9, isEqual: isRight)
                    return ScriptedAnswer(body: Self.page([last], environment: environment))
                default: return ScriptedAnswer(body: Self.page([], environment: environment))
                }
            }
            #expect(failed == !isRight)
            #expect(requests.map { $0.parameter("environment") } == ["development", "production", "production"])
            #expect(requests.map { $0.parameter("after") } == [nil, nil, "private%2F_a"])
            #expect(requests.allSatisfy { $0.parameter("verify") == "true" && $0.parameter("zones") == nil })
        }
        let (one, _) = try await run(["--environment", "production", "--zones", "--user", "ada"]) { _, _ in
            ScriptedAnswer(body: Self.page([], environment: "production"))
        }
        #expect(one.map { $0.parameter("environment") } == ["production"])
        #expect(one.first?.parameter("zones") == "true" && one.first?.parameter("user") == "ada")
    }

    @Test("A recount that was not in time is not begun again, and pages that do not go on end the command")
    func givenUp() async throws {
        let busy = #"{"serverErrorCode":"TRY_AGAIN_LATER","reason":"nothing was done: no answer","retryAfter":0}"#
        await #expect(throws: CommandFailure.self) {
            _ = try await run(["--verify"]) { _, earlier in
                // A second request would be answered.
                earlier == 0 ? ScriptedAnswer(status: 503, body: busy) : ScriptedAnswer(body: Self.page([]))
            }
        }
        await #expect(throws: CommandFailure.self) {
            _ = try await run([]) { _, _ in ScriptedAnswer(body: Self.page([], next: "private/_a")) }
        }
    }
}
