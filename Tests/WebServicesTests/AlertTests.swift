import Directory
import RecordModel
import Service
import TestSupport
import Testing

@testable import WebServices

@Suite("Alerts over HTTP")
struct AlertHTTPTests {
    private static let at = "container=\(ConsoleWorld.container)"
    private static let save =
        #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "a", "fields": {}}}]}"#

    private static func rule(_ name: AlertRule, _ json: JSONValue) throws -> JSONValue {
        try #require(json["rules"]?.array?.first { $0["name"] == .string(name.rawValue) })
    }

    @Test("all rules are told with their thresholds, which are limits; 0 switches a rule off")
    func thresholds() async throws {
        let world = try await ConsoleWorld()
        let quiet = try await world.admin("GET", "alerts")
        #expect(quiet["rules"]?.array?.compactMap { $0["name"]?.string } == AlertRule.allCases.map(\.rawValue))
        #expect(quiet["rules"]?.array?.allSatisfy { $0["advice"]?.string?.hasSuffix(".") == true } == true)
        #expect(quiet["nodes"]?.array?.count == 1 && quiet["nodes"]?.array?.first?["problem"] == nil)
        #expect(quiet["leftOut"] == nil && quiet["unknownRules"] == nil)
        let elections = try Self.rule(.elections, quiet)
        #expect(elections["threshold"] == .integer(5) && elections["source"] == .string("default"))
        // The node elected itself when it began.
        let set = try await world.token("PATCH", "limits", #"{"alertElections": 1}"#)
        #expect(set.status == 200)
        let loud = try await world.admin("GET", "alerts")
        let fired = try Self.rule(.elections, loud)
        #expect(fired["state"] == .string("firing") && fired["source"] == .string("cluster"))
        let alert = try #require(fired["alerts"]?.array?.first)
        #expect(alert["node"] == .integer(1) && alert["threshold"] == .integer(1) && alert["since"] != nil)
        #expect(loud["firing"] != .integer(0) && loud["firing"] != nil)
        try await world.admin("PATCH", "limits", #"{"alertElections": 0}"#)
        #expect(try Self.rule(.elections, try await world.admin("GET", "alerts"))["state"] == .string("off"))
        #expect(try await world.token("PATCH", "limits?\(Self.at)", #"{"alertElections": 1}"#).status == 400)
        #expect(try await world.token("PATCH", "limits", #"{"alertErrorPercent": 101}"#).status == 400)
        #expect(try await world.token("GET", "alerts?container=iCloud.nowhere").status == 404)
        try await world.node.stop()
    }

    @Test("public data near their limit are told by the container's own threshold, to those who may see it")
    func publicData() async throws {
        let world = try await ConsoleWorld()
        let viewer = try await world.member("vera", "viewer", containers: #"["\#(ConsoleWorld.container)"]"#)
        try await world.admin("POST", "containers", #"{"name": "iCloud.test.other"}"#)
        let stranger = try await world.member("otto", "viewer", containers: #"["iCloud.test.other"]"#)
        try await world.admin("POST", "schema?\(Self.at)", "DEFINE SCHEMA RECORD TYPE Note (text STRING);")
        let saved = try await world.token(
            "POST", "/database/1/\(ConsoleWorld.container)/development/public/records/modify", Self.save)
        #expect(saved.status == 200)
        world.node.recordService.requests.endMinute()
        await UsageHistory(world.node.recordService).write()
        try await world.admin("PATCH", "limits?\(Self.at)", #"{"databaseBytes": 10, "databaseBytesPerUser": 0}"#)
        func found(_ answer: JSONValue) throws -> JSONValue? {
            try Self.rule(.publicData, answer)["alerts"]?.array?.first
        }
        let told = try #require(try found(try await world.browse(viewer, "GET", "alerts").json))
        #expect(told["container"] == .string(ConsoleWorld.container) && told["environment"] == .string("development"))
        #expect(told["threshold"] == .integer(90) && told["state"] == .string("firing"))
        #expect(try found(try await world.browse(stranger, "GET", "alerts").json) == nil)
        #expect(try await world.browse(stranger, "GET", "alerts?\(Self.at)").status == 403)
        try await world.admin("PATCH", "limits?\(Self.at)", #"{"alertPublicDataPercent": 0}"#)
        let off = try await world.admin("GET", "alerts?\(Self.at)")
        #expect(try Self.rule(.publicData, off)["state"] == .string("off"))
        #expect(try found(try await world.admin("GET", "alerts")) == nil)
        try await world.node.stop()
    }
}
