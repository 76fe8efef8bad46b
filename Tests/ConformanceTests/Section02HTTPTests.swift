import RecordModel
import Testing

extension Conformance {
    @Suite("2 HTTP rules")
    struct Section02HTTPTests {
        @Test(
            "the body is JSON whatever the Content-Type says",
            arguments: Door.cases([
                "text/plain", "application/json", "application/json; charset=utf-8", "application/octet-stream",
                "multipart/form-data", "",
            ]))
        func contentTypes(door: Door, type: String) async throws {
            let space = try await Space(door, with: "a")
            var call = space.request("records/lookup", ["records": [["recordName": "a"]]])
            call.headers = type.isEmpty ? [] : [("Content-Type", type)]
            let answer = try await space.send(call)
            #expect(answer.status == 200)
            #expect(answer.names == ["a"])
        }

        @Test(
            "operations without a body are called with GET",
            arguments: Door.cases([
                "zones/list", "users/caller", "users/current", "users/discover", "users/lookup/contacts",
            ]))
        func get(door: Door, action: String) async throws {
            let space = try await Space(door)
            #expect(try await space.inPublic.get(action).status == 200)
        }

        @Test(
            "operations without a body are also taken as POST with {}",
            arguments: Door.cases([
                "zones/list", "users/caller", "users/current", "users/lookup/contacts", "subscriptions/list",
            ]))
        func post(door: Door, action: String) async throws {
            let space = try await Space(door)
            #expect(try await space.inPublic.call(action, [:]).status == 200)
        }

        @Test("subscriptions/list is known under GET", arguments: Door.allCases)
        func subscriptionsList(door: Door) async throws {
            #expect(try await Space(door).get("subscriptions/list").status == 200)
        }

        @Test(
            "operations with a body are POST: another method is refused",
            arguments: Door.cases([
                "records/query", "records/lookup", "records/modify", "zones/modify", "zones/lookup", "changes/zone",
            ]))
        func wrongMethod(door: Door, action: String) async throws {
            let answer = try await Space(door).get(action)
            expectFailure(answer, 405, "BAD_REQUEST", "POST")
            #expect(answer.header("Allow") == "POST")
        }

        @Test("answers are application/json; charset=UTF-8, and objects", arguments: Door.allCases)
        func answersAreJSON(door: Door) async throws {
            let space = try await Space(door)
            var wrong = space.request("records/query", [:])
            wrong.query = []
            for answer in [
                try await space.get("zones/list"), try await space.call("records/query", [:]),
                try await space.send(wrong), try await space.call("records/none", [:]),
                try await space.send(Call("GET", "/none")),
            ] {
                #expect(answer.header("Content-Type") == "application/json; charset=UTF-8")
                #expect(!answer.json.keys.isEmpty, "\(answer)")
            }
        }

        @Test("success is 200", arguments: Door.allCases)
        func success(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.query().status == 200)
        }

        @Test("every answer names its request in X-Apple-Request-UUID, each another", arguments: Door.allCases)
        func requestUUID(door: Door) async throws {
            let space = try await Space(door)
            let first = try await space.get("zones/list")
            let second = try await space.get("zones/list")
            let failed = try await space.call("records/query", [:])
            #expect(try #require(first.header("X-Apple-Request-UUID")).count == 36)
            #expect(first.header("X-Apple-Request-UUID") != second.header("X-Apple-Request-UUID"))
            #expect(failed.header("X-Apple-Request-UUID") == failed.json["uuid"]?.string)
        }

        @Test("Access-Control-Expose-Headers names what browsers must read", arguments: Door.allCases)
        func exposedHeaders(door: Door) async throws {
            let answer = try await Space(door).get("zones/list")
            let exposed = try #require(answer.header("Access-Control-Expose-Headers"))
            #expect(exposed.contains("X-Apple-Request-UUID"))
            #expect(exposed.contains("X-Apple-CloudKit-Web-Auth-Token"))
        }

        @Test("OPTIONS answers 200 with the methods GET, POST, PUT, DELETE", arguments: Door.allCases)
        func options(door: Door) async throws {
            let space = try await Space(door)
            let answer = try await space.send(Call("OPTIONS", space.path("records/query")))
            #expect(answer.status == 200)
            let methods = try #require(answer.header("Access-Control-Allow-Methods"))
            for method in ["GET", "POST", "PUT", "DELETE"] { #expect(methods.contains(method)) }
        }

        @Test(
            "deviates: answers carry no X-Apple-CloudKit-Version, Via and X-Responding-Instance",
            arguments: Door.allCases)
        func headersLeftOut(door: Door) async throws {
            let answer = try await Space(door).get("zones/list")
            for name in ["X-Apple-CloudKit-Version", "Via", "X-Responding-Instance"] {
                #expect(answer.header(name) == nil)
            }
        }

        @Test("deviates: answers are not compressed, also where the client would take it", arguments: Door.allCases)
        func noCompression(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.headers = [("Accept-Encoding", "gzip")]
            let answer = try await space.send(call)
            #expect(answer.header("Content-Encoding") == nil)
            #expect(answer.json["zones"] != nil)
        }

        @Test(
            "unknown query parameters, and those of other clients, are ignored",
            arguments: Door.cases([
                "ckjsBuildVersion=2310ProjectDev27", "ckjsVersion=2.6.4",
                "clientId=6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "clientBuildNumber=2021Project52", "clientMasteringNumber=2021B29", "dsid=1", "remapEnums=true",
                "whatever=%C3%A9", "novalue",
            ]))
        func parameters(door: Door, parameter: String) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            let sides = parameter.split(separator: "=").map(String.init)
            call.query.append((sides[0], sides.count > 1 ? sides[1] : ""))
            #expect(try await space.send(call).status == 200)
        }

        @Test(
            "getCurrentSyncToken=true adds the zone's current token to query, lookup and modify",
            arguments: Door.allCases)
        func currentSyncToken(door: Door) async throws {
            let space = try await Space(door).newZone()
            let zone = space.zoneID
            for (action, body) in [
                (
                    "records/modify",
                    ["zoneID": zone, "operations": [Space.operation("create", "a")]] as JSONValue
                ), ("records/lookup", ["zoneID": zone, "records": [["recordName": "a"]]]),
                ("records/query", ["zoneID": zone, "query": ["recordType": "Item"]]),
            ] {
                var call = space.request(action, body)
                call.query.append(("getCurrentSyncToken", "true"))
                let answer = try await space.send(call)
                let token = try #require(answer.json["syncToken"]?.string, "\(answer)")
                let page = try await space.changes(token)
                #expect(page["records"] == [] && page["moreComing"] == false, "\(action): \(page.text)")
            }
        }

        @Test("without getCurrentSyncToken there is none", arguments: Door.allCases)
        func noSyncToken(door: Door) async throws {
            let space = try await Space(door).newZone()
            #expect(try await space.query().json["syncToken"] == nil)
        }

        @Test(
            "a ckWebAuthToken that is undefined, null or empty is no token",
            arguments: Door.cases(["undefined", "null", ""]))
        func noToken(door: Door, text: String) async throws {
            let space = try await Space(door).changed { $0.session = text }
            expectFailure(try await space.get("zones/list"), 421, "AUTHENTICATION_REQUIRED")
            #expect(try await space.inPublic.query([Space.filter("title", "EQUALS", "nothing")]).status == 200)
        }

        @Test("API tokens are hexadecimal, so that nothing of them needs escaping", arguments: Door.allCases)
        func hexTokens(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            for token in home.apiTokens.values { #expect(token.allSatisfy { $0.isHexDigit }) }
        }

        @Test(
            "a body that is no JSON object is BAD_REQUEST",
            arguments: Door.cases(["", "{", "[]", "7", "null", #"{"operations": "\ud800"}"#, "{} {}", "\u{FEFF}{]"]))
        func badBodies(door: Door, body: String) async throws {
            let space = try await Space(door)
            var call = space.request("records/modify")
            call.body = Array(body.utf8)
            expectFailure(try await space.send(call), 400, "BAD_REQUEST")
        }

        @Test("bodies are UTF-8: other bytes are BAD_REQUEST", arguments: Door.allCases)
        func notUTF8(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("records/lookup")
            call.body = Array(#"{"records": [{"recordName": ""#.utf8) + [0xFF, 0xFE] + Array(#""}]}"#.utf8)
            expectFailure(try await space.send(call), 400, "BAD_REQUEST")
        }
    }
}
