import Crypto
import RecordModel
import TestSupport
import Testing

@testable import WebServices

@Suite("Administering who may do what", .serialized)
struct SignInAdminTests {
    @Test("keys are made known, listed and revoked; private keys and other curves are refused")
    func keys() async throws {
        let world = try await SignInWorld()
        func body(_ pem: String, user: String = "ada") -> String {
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("container", SignInWorld.container)
                writer.member("publicKey", pem)
                writer.member("user", user)
                writer.member("label", "backend")
            }
            return String(decoding: writer.bytes, as: UTF8.self)
        }
        let key = P256.Signing.PrivateKey()
        let made = try await world.admin("POST", "keys", body(key.publicKey.pemRepresentation))
        let id = try #require(made["id"]?.string)
        #expect(id.count == 64 && made["userRecordName"]?.string?.hasPrefix("_") == true)
        let listed = try await world.admin("GET", "keys")["keys"]?.array
        #expect(listed?.count == 1 && listed?.first?["user"]?.string == "ada" && listed?.first?["id"]?.string == id)
        for (bad, status) in [
            (body(key.pemRepresentation), 400), (body(P384.Signing.PrivateKey().publicKey.pemRepresentation), 400),
            (body("x"), 400), (body(key.publicKey.pemRepresentation, user: "nobody"), 404), ("", 400),
        ] { _ = try await world.admin("POST", "keys", bad, status: status) }
        #expect(try await world.admin("DELETE", "keys?id=\(id)")["revoked"] == .bool(true))
        _ = try await world.admin("DELETE", "keys?id=\(id)", status: 404)
        #expect(try await world.admin("GET", "keys")["keys"]?.array == [])
        try await world.node.stop()
    }

    @Test("custom roles of the schema have members; system roles and roles of no schema have none")
    func roles() async throws {
        let world = try await SignInWorld()
        let at = "container=\(SignInWorld.container)"
        _ = try await world.admin(
            "POST", "schema?\(at)", "DEFINE SCHEMA CREATE ROLE editor; CREATE ROLE auditor;")
        func body(_ role: String, _ user: String) -> String {
            #"{"container": "\#(SignInWorld.container)", "role": "\#(role)", "user": "\#(user)"}"#
        }
        #expect(try await world.admin("POST", "roles/members", body("editor", "ada"))["member"] == .bool(true))
        let roles = try await world.admin("GET", "roles?\(at)")["roles"]?.array
        #expect(roles?.compactMap { $0["name"]?.string } == ["auditor", "editor"])
        #expect(roles?.last?["members"]?.array?.compactMap(\.string) == ["ada"])
        for (bad, status) in [
            (body("_creator", "ada"), 400), (body("none", "ada"), 404), (body("editor", "nobody"), 404), ("", 400),
        ] { _ = try await world.admin("POST", "roles/members", bad, status: status) }
        _ = try await world.admin("DELETE", "roles/members?\(at)&role=editor&user=ada")
        _ = try await world.admin("DELETE", "roles/members?\(at)&role=editor&user=ada", status: 404)
        _ = try await world.admin("GET", "roles?container=none", status: 404)
        try await world.node.stop()
    }

    @Test("limits are set for the cluster and for a container, and say where they come from")
    func limits() async throws {
        let world = try await SignInWorld()
        let at = "limits?container=\(SignInWorld.container)"
        func limit(_ name: String, _ answer: JSONValue) -> JSONValue? {
            answer["limits"]?.array?.first { $0["name"]?.string == name }
        }
        let standard = try await world.admin("GET", at)
        #expect(limit("userBytes", standard)?["value"] == .integer(ContainerLimit.userBytes.standard))
        #expect(limit("userBytes", standard)?["source"]?.string == "default")
        #expect(standard["users"] == .integer(0))
        _ = try await world.admin("PATCH", "limits", #"{"userBytes": 7, "databaseBytes": 5}"#)
        let own = try await world.admin("PATCH", at, #"{"userBytes": 9}"#)
        #expect(limit("userBytes", own)?["value"] == .integer(9))
        #expect(limit("userBytes", own)?["source"]?.string == "container")
        #expect(limit("databaseBytes", own)?["source"]?.string == "cluster")
        #expect(own["effective"]?["databaseBytes"] == .integer(5) && own["effective"]?["userBytes"] == .integer(9))
        // A user adds to the database's size.
        #expect(try await world.signIn("ada", SignInWorld.password).status == 200)
        let grown = try await world.admin("GET", at)
        #expect(grown["users"] == .integer(1) && grown["effective"]?["databaseBytes"] == .integer(2_500_005))
        let back = try await world.admin("PATCH", at, #"{"userBytes": null}"#)
        #expect(limit("userBytes", back)?["value"] == .integer(7))
        for bad in [
            "", "{}", "[]", #"{"none": 1}"#, #"{"userBytes": -1}"#, #"{"requestsPerSecond": 0}"#,
            #"{"userBytes": "1"}"#,
        ] {
            _ = try await world.admin("PATCH", at, bad, status: 400)
        }
        _ = try await world.admin("PATCH", "limits?container=none", #"{"userBytes": 1}"#, status: 404)
        try await world.node.stop()
    }

    @Test("the audit log is read in pages that hang together")
    func audit() async throws {
        let world = try await SignInWorld()
        let all = try await world.admin("GET", "audit")["records"]?.array ?? []
        #expect(all.count >= 3)
        let zeros = String(repeating: "0", count: 64)
        #expect(all.first?["previousHash"]?.string == zeros && all.first?["sequence"] == .integer(1))
        var after: Int64 = 0
        var previous = zeros
        for record in all {
            let page = try await world.admin("GET", "audit?after=\(after)&limit=1")
            #expect(page["records"]?.array == [record] && page["firstPreviousHash"]?.string == previous)
            after += 1
            previous = record["hash"]?.string ?? ""
        }
        #expect(try await world.admin("GET", "audit?after=\(after)")["records"]?.array == [])
        for bad in ["audit?log=all", "audit?after=-1", "audit?limit=0", "audit?limit=x"] {
            _ = try await world.admin("GET", bad, status: 400)
        }
        try await world.node.stop()
    }

    @Test("an API token's origins and callback URL are checked, kept and shown")
    func tokens() async throws {
        let world = try await SignInWorld(
            token: #""origins": ["HTTPS://App.Example/", "http://localhost:3000"], "callbackURL": "myapp://in""#)
        let token = try await world.admin("GET", "tokens?kind=api")["tokens"]?.array?.first
        #expect(token?["origins"]?.array?.compactMap(\.string) == ["https://app.example", "http://localhost:3000"])
        #expect(token?["callbackURL"]?.string == "myapp://in")
        for bad in [
            #""origins": "x""#, #""origins": ["x"]"#, #""origins": [1]"#, #""callbackURL": "javascript:x""#,
            #""callbackURL": 1"#,
        ] {
            _ = try await world.admin(
                "POST", "tokens", #"{"kind": "api", "container": "\#(SignInWorld.container)", \#(bad)}"#, status: 400)
        }
        try await world.node.stop()
    }
}
