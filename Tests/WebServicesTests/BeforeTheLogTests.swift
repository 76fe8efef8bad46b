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
            query = URLText.query([
                (name: "ckAPIToken", value: world.apiToken.secret),
                (name: "ckWebAuthToken", value: try await world.session(of: "ada")),
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
        let text = String(repeating: "x", count: 1_048_577)
        let keys = (0..<1_025).map { #"{"key": "k\#($0)", "value": true}"# }.joined(separator: ",")
        let refused = [
            (#"{"writes": [{"key": "a", "value": [\#(members)]}]}"#, 400),
            (#"{"writes": [{"key": "a", "value": "\#(text)"}]}"#, 413),
            (#"{"writes": [\#(keys)]}"#, 413),
            (#"{"writes": [{"key": "", "value": 1}]}"#, 400),
        ]
        for (body, status) in refused {
            let answer = try await withoutEntry(world) { try await world.set(body) }
            #expect(answer.status == status, "\(answer)")
        }
        let large = try await withoutEntry(world) {
            try await world.modify(create("large", "\"\(text)\"", field: "text"))
        }
        #expect(large.json["records"]?.array?.first?["serverErrorCode"]?.string == "BAD_REQUEST", "\(large)")
        let before = try await world.logged()
        #expect(try await world.set(#"{"writes": [{"key": "a", "value": 2}]}"#).status == 200)
        #expect(try await world.logged() > before)
    }

    /// The answer to a request that makes no entry of the log. A shard has a few entries of its own after its start,
    /// so a request is sent again where one came meanwhile; one that is logged makes an entry each time.
    private func withoutEntry(
        _ world: World, _ request: () async throws -> SignInWorld.Page
    ) async throws -> SignInWorld.Page {
        for _ in 0..<10 {
            let before = try await world.logged()
            let answer = try await request()
            if try await world.logged() == before { return answer }
        }
        throw TestFailure("the log grew with each of ten requests")
    }

    private func create(_ name: String, _ value: String, field: String = "number") -> String {
        let record =
            #"{"recordName": "\#(name)", "recordType": "Note", "fields": {"\#(field)": {"value": \#(value)}}}"#
        return #"{"operations": [{"operationType": "create", "record": \#(record)}]}"#
    }
}
