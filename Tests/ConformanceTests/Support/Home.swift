import RecordModel
import Synchronization
import TestSupport
import Testing

/// A container with tokens for both environments.
struct Home: Sendable {
    var service: any ConformanceService
    var container: String
    /// API tokens by environment.
    var apiTokens: [String: String]

    private static let counter = Atomic<Int>(0)

    /// A number that no other case of this run has.
    static func unique() -> Int { counter.add(1, ordering: .relaxed).oldValue }

    /// Makes a container. With a schema, that is imported and deployed.
    static func make(_ door: Door, schema: String? = nil) async throws -> Home {
        try await make(on: try await Servers.shared.service(for: door), schema: schema)
    }

    static func make(on service: any ConformanceService, schema: String? = nil) async throws -> Home {
        var home = Home(service: service, container: "iCloud.com.example.case\(unique())", apiTokens: [:])
        _ = try await home.admin("POST", "containers", ["name": .string(home.container)])
        if let schema {
            _ = try await home.adminText("POST", "schema", [("container", home.container)], schema)
            _ = try await home.admin("POST", "schema/deploy?container=\(home.container)")
        }
        for environment in ["development", "production"] {
            let token = try await home.admin(
                "POST", "tokens",
                ["kind": "api", "container": .string(home.container), "environment": .string(environment)])
            home.apiTokens[environment] = try #require(token["secret"]?.string)
        }
        return home
    }

    /// An administrator's request that must succeed.
    func admin(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
        let answer = try await adminCall(method, path, body.map { $0.serialized() } ?? [])
        try #require(answer.status == 200, "\(method) \(path): \(answer)")
        return answer.json
    }

    func adminText(
        _ method: String, _ path: String, _ query: [(String, String)], _ body: String
    ) async throws -> Answer {
        let target = path + "?" + query.map { "\($0)=\($1)" }.joined(separator: "&")
        let answer = try await adminCall(method, target, Array(body.utf8))
        try #require(answer.status == 200, "\(method) \(target): \(answer)")
        return answer
    }

    /// An administrator's request, whatever comes of it.
    func adminCall(_ method: String, _ path: String, _ body: [UInt8] = []) async throws -> Answer {
        let parts = path.split(separator: "?", maxSplits: 1)
        var call = Call(method, "/admin/1/\(parts[0])")
        if parts.count > 1 {
            call.query = parts[1].split(separator: "&").map { pair in
                let sides = pair.split(separator: "=", maxSplits: 1)
                return (String(sides[0]), sides.count > 1 ? String(sides[1]) : "")
            }
        }
        call.headers = [("Authorization", "Bearer \(service.administratorToken)")]
        call.body = body
        return try await checked(call)
    }

    /// Sends a request and holds the answer against the OpenAPI document.
    func checked(_ call: Call) async throws -> Answer {
        let answer = try await Servers.shared.send(call, to: service)
        for fault in Self.contract.faults(
            method: call.method, path: call.path, status: answer.status, type: answer.header("Content-Type") ?? "",
            body: answer.body)
        {
            Issue.record("\(fault)\nthe answer was \(answer)")
        }
        return answer
    }

    /// The OpenAPI document.
    static let contract: Contract = {
        do {
            return try Contract()
        } catch {
            preconditionFailure("the OpenAPI document is not JSON: \(error)")
        }
    }()

    /// A new user of this container, and its session.
    func makeUser(_ more: JSONValue = [:]) async throws -> (name: String, session: String, recordName: String) {
        let name = "user\(Self.unique())"
        _ = try await admin("POST", "users", JSONValue.object([.init("name", .string(name))]).with(more))
        let token = try await admin(
            "POST", "tokens", ["kind": "session", "container": .string(container), "user": .string(name)])
        return (
            name, try #require(token["secret"]?.string), try #require(token["userRecordName"]?.string)
        )
    }
}

enum Schemas {
    static let grants = """
        GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
        """

    /// A type with a field of each type, indexed where it can be, and two more.
    static let standard = """
        DEFINE SCHEMA
            RECORD TYPE Item (
                "___recordID" REFERENCE QUERYABLE SORTABLE,
                "___createTime" TIMESTAMP QUERYABLE SORTABLE,
                "___modTime" TIMESTAMP QUERYABLE SORTABLE,
                "___createdBy" REFERENCE QUERYABLE,
                "___modifiedBy" REFERENCE QUERYABLE,
                "___parent" REFERENCE QUERYABLE,
                title STRING QUERYABLE SORTABLE SEARCHABLE,
                notes STRING SEARCHABLE,
                labels LIST<STRING> QUERYABLE SEARCHABLE,
                count INT64 QUERYABLE SORTABLE,
                counts LIST<INT64> QUERYABLE,
                ratio DOUBLE QUERYABLE SORTABLE,
                ratios LIST<DOUBLE> QUERYABLE,
                due TIMESTAMP QUERYABLE SORTABLE,
                dues LIST<TIMESTAMP> QUERYABLE,
                data BYTES QUERYABLE SORTABLE,
                datas LIST<BYTES> QUERYABLE,
                place LOCATION QUERYABLE SORTABLE,
                places LIST<LOCATION>,
                link REFERENCE QUERYABLE SORTABLE,
                links LIST<REFERENCE> QUERYABLE,
                plain STRING,
                onlyQueryable INT64 QUERYABLE,
                onlySortable INT64 SORTABLE,
                file ASSET,
                \(grants)
            );
            RECORD TYPE Secret (
                "___recordID" REFERENCE QUERYABLE,
                open STRING QUERYABLE,
                text ENCRYPTED STRING,
                number ENCRYPTED INT64,
                ratio ENCRYPTED DOUBLE,
                time ENCRYPTED TIMESTAMP,
                data ENCRYPTED BYTES,
                place ENCRYPTED LOCATION,
                texts LIST<ENCRYPTED STRING>,
                \(grants)
            );
            RECORD TYPE Bare (
                text STRING,
                \(grants)
            );
            RECORD TYPE Closed (
                "___recordID" REFERENCE QUERYABLE,
                text STRING,
                GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud"
            );
        """
}
