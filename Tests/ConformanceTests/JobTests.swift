import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("Jobs")
    struct JobTests {
        @Test("counting, exporting and deleting all matches answer as the document says", arguments: Door.allCases)
        func answers(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let home = space.home
            let input = JSONValue.object([
                .init("container", .string(home.container)),
                .init("query", .object([.init("recordType", .string("Item"))])),
            ])
            var begun: [JSONValue] = []
            for kind in ["count", "export", "delete"] {
                var job = try await home.admin("POST", "jobs/\(kind)", input)
                let id = try #require(job["id"]?.string)
                while job["state"] == "running" { job = try await home.admin("GET", "jobs/state?id=\(id)&wait=true") }
                #expect(job["state"] == "done" && job["kind"]?.string == kind, "\(job)")
                if kind == "export" {
                    let file = try await home.adminCall("GET", "jobs/result?id=\(id)")
                    #expect(file.status == 200 && file.json.array != nil)
                    #expect(try await home.adminCall("GET", "jobs/result?id=\(id)&offset=1&length=1").status == 200)
                }
                begun.append(job)
            }
            let listed = try await home.admin("GET", "jobs?container=\(home.container)")
            #expect(listed["jobs"]?.array?.map { $0["id"] } == begun.reversed().map { $0["id"] })
            let id = begun[0]["id"]?.string ?? ""
            _ = try await home.admin("DELETE", "jobs?id=\(id)")
            #expect(try await home.adminCall("GET", "jobs/state?id=\(id)").status == 404)
        }
    }
}
