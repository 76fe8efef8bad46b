import Foundation
import RecordModel
import Testing
import Wire

@testable import RecordStore

@Suite("What notifications carry, and which subscriptions are the same")
struct NotificationContentTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    @Test("the value of the field that a subscription collapses by stands beside the payload")
    func collapseID() throws {
        try pair.watch(Pair.query("q", rank: nil, info: #"{"alertBody": "new", "collapseIDKey": "plain"}"#))
        for (name, value) in [("a", FieldValue.string("one")), ("b", .string("one")), ("c", .string(""))] {
            _ = try pair.shard.one(
                Fixture.publicZone, by: Fixture.bob, .make(.create, name, [("plain", value)]))
        }
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "d"))
        try pair.deliverAll()
        guard case .entries(let entries, _, false) = try pair.page() else {
            Issue.record("no page")
            return
        }
        #expect(entries.map(\.collapseID) == ["one", "one", nil, nil], "the log keeps all of them")
        for entry in entries {
            let payload = try JSONParser.parse(entry.payload)
            #expect(payload["aps"]?["alert"] == .string("new") && payload["ck"]?["qry"]?["af"] == nil)
        }
    }

    private func stored(_ fields: Fields, info: String, at level: FeatureLevel) throws -> NotificationPayload.Stored {
        let subscription = Pair.query("q", rank: nil, info: info)
        var match = Match(
            subscriber: Pair.subscriber, scope: .public, subscriptionID: "q", time: 1, client: nil,
            id: [UInt8](repeating: 1, count: 16), zone: Fixture.publicZone, record: nil)
        match.record = Match.Record(name: "a", type: "Note", event: .created, isCreator: false, fields: fields)
        return NotificationPayload.Stored(
            bytes: try #require(NotificationPayload.stored(of: match, for: subscription, at: level)))
    }

    @Test("the end of a zone in which nothing was done has another name than its beginning", arguments: [15, 16])
    func emptyZone(_ level: UInt64) throws {
        try pair.watch(Pair.subscription("all"))
        for kind in [ModifyZone.Kind.create, .delete] {
            let command = RecordCommand.modifyZone(
                ModifyZone(kind, zone: Fixture.work, caller: Fixture.ann, time: 1_000))
            try pair.shard.run(level: FeatureLevel(level)) { _ = try $0.apply(command) }
        }
        try pair.deliverAll()
        let names = try pair.log().compactMap { $0["ck"]?["nid"]?.string }
        #expect(names.count == 2 && Set(names).count == (level < 16 ? 1 : 2), "\(names)")
    }

    @Test("dates in texts are written as such, not as milliseconds")
    func dates() throws {
        var random = Random(1)
        let days: [Int64] = [0, -1, 951_782_400_000, 951_868_800_000, 1_790_000_000_000]
        // Foundation has the Julian calendar for what was before.
        let others = (0..<200).map { _ in
            Int64.random(in: -12_000_000_000_000...250_000_000_000_000, using: &random)
        }
        for time in days + others {
            var fields = Fields()
            fields["due"] = .timestamp(time)
            let info = #"{"alertLocalizationArgs": ["due"], "collapseIDKey": "due"}"#
            let second = Date(timeIntervalSince1970: (Double(time) / 1_000).rounded(.down))
            let text = second.formatted(.iso8601)
            let now = try stored(fields, info: info, at: .collapseIDs)
            #expect(try JSONParser.parse(now.json)["aps"]?["alert"]?["loc-args"] == .array([.string(text)]))
            #expect(now.collapseID == text)
            let before = try stored(fields, info: info, at: .renewedSubscriptions)
            #expect(try JSONParser.parse(before.json)["aps"]?["alert"]?["loc-args"] == .array([.string("\(time)")]))
            #expect(before.collapseID == nil)
        }
    }

    @Test("the most distant times have a text, too")
    func distant() throws {
        let texts: [Int64: String] = [
            .min: "-292275055-05-16T16:47:04Z", -62_135_596_800_000: "0001-01-01T00:00:00Z",
            .max: "292278994-08-17T07:12:55Z",
        ]
        for (time, text) in texts {
            var fields = Fields()
            fields["due"] = .timestamp(time)
            #expect(try stored(fields, info: #"{"collapseIDKey": "due"}"#, at: .collapseIDs).collapseID == text)
        }
    }

    @Test("a query that is written otherwise is the same query")
    func twins() throws {
        func query(_ id: String, rank: Int64 = 1, _ json: String, _ info: String) -> Subscription {
            var subscription = Pair.query(id, rank: rank, info: info)
            subscription.queryJSON = Array(json.utf8)
            return subscription
        }
        let info = #"{"title":"t","additionalFields":["rank"]}"#
        try pair.watch(query("one", #"{"recordType":"Note","filterBy":[]}"#, info))
        let other = #"{"additionalFields":["rank"],"title":"t"}"#
        let twin = try pair.modify(
            .save(query("two", #"{"filterBy":[],"recordType":"Note"}"#, other), targets: [Pair.shardGroup]))
        #expect(twin.failures == [ServiceError(.exists, "subscription is duplicate of 'one'")])
        let differing = [
            query("three", rank: 2, #"{"recordType":"Note","filterBy":[]}"#, info),
            query("four", #"{"recordType":"Note","filterBy":[]}"#, #"{"title":"u"}"#),
        ]
        for subscription in differing {
            #expect(try pair.modify(.save(subscription, targets: [Pair.shardGroup])).failures == [nil])
        }
    }
}
