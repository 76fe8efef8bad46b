import RecordModel
import TestSupport
import Testing

@testable import WebServices

@Suite("What can only be refused is answered before the log")
struct BeforeTheLogTests {
    private struct World {
        let world: SignInWorld
        let query: String

        init() async throws {
            world = try await SignInWorld(token: #""environment": "development""#)
            let session = try await world.admin(
                "POST", "tokens",
                #"{"kind": "session", "container": "\#(SignInWorld.container)", "user": "ada"}"#)
            query = URLText.query([
                (name: "ckAPIToken", value: world.apiToken.secret),
                (name: "ckWebAuthToken", value: try #require(session["secret"]?.string)),
            ])
        }

        func set(_ body: String) async throws -> SignInWorld.Page {
            try await world.postJSON("/kv/1/\(SignInWorld.container)/development/set?\(query)", body)
        }

        func modify(_ body: String) async throws -> SignInWorld.Page {
            try await world.postJSON(
                "/database/1/\(SignInWorld.container)/development/private/records/modify?\(query)", body)
        }

        /// How long the log of the only shard is.
        func logged() async throws -> Int64 {
            let replicas = try await world.admin("GET", "status")["replicas"]?.array ?? []
            let shard = try #require(replicas.first { $0["group"] != .integer(0) })
            guard case .integer(let index)? = shard["commitIndex"] else { throw TestFailure("no commitIndex") }
            return index
        }
    }

    @Test("preferences: counts and sizes; records: sizes and lists")
    func refused() async throws {
        let world = try await World()
        #expect(try await world.set(#"{"writes": [{"key": "a", "value": 1}]}"#).status == 200)
        let first = try await world.modify(create("first", "1"))
        #expect(first.json["records"]?.array?.first?["recordName"]?.string == "first", "\(first)")
        let members = Array(repeating: "-0", count: 10_001).joined(separator: ",")
        try await neverLogged(world) {
            let answer = try await world.set(#"{"writes": [{"key": "a", "value": [\#(members)]}]}"#)
            #expect(answer.status == 400)
        }
        let text = String(repeating: "x", count: 1_048_577)
        try await neverLogged(world) {
            let answer = try await world.set(#"{"writes": [{"key": "a", "value": "\#(text)"}]}"#)
            #expect(answer.status == 413)
        }
        let keys = (0..<1_025).map { #"{"key": "k\#($0)", "value": true}"# }.joined(separator: ",")
        try await neverLogged(world) {
            let answer = try await world.set(#"{"writes": [\#(keys)]}"#)
            #expect(answer.status == 413)
        }
        try await neverLogged(world) {
            let answer = try await world.set(#"{"writes": [{"key": "", "value": 1}]}"#)
            #expect(answer.status == 400)
        }
        try await neverLogged(world) {
            let large = try await world.modify(create("large", "\"\(text)\"", field: "text"))
            #expect(large.json["records"]?.array?.first?["serverErrorCode"]?.string == "BAD_REQUEST", "\(large)")
        }
        let before = try await world.logged()
        #expect(try await world.set(#"{"writes": [{"key": "a", "value": 2}]}"#).status == 200)
        #expect(try await world.logged() > before)
    }

    /// Expects that a request can be answered without an entry of the log. A shard has a few entries of its own after
    /// its start, so a request is sent again where one came meanwhile; a logged request makes one each time.
    private func neverLogged(_ world: World, _ request: () async throws -> Void) async throws {
        for _ in 0..<10 {
            let before = try await world.logged()
            try await request()
            if try await world.logged() == before { return }
        }
        Issue.record("the log grew with each of ten requests")
    }

    private func create(_ name: String, _ value: String, field: String = "number") -> String {
        let record =
            #"{"recordName": "\#(name)", "recordType": "Note", "fields": {"\#(field)": {"value": \#(value)}}}"#
        return #"{"operations": [{"operationType": "create", "record": \#(record)}]}"#
    }
}
