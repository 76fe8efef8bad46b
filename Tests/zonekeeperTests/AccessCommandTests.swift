import ArgumentParser
import Foundation
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

@Suite("Commands for who may, and how much")
struct AccessCommandTests {
    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    @Test(
        "Commands are found by their names",
        arguments: [
            (["user", "create", "ada", "--password-stdin"], "UserCreateCommand"),
            (["user", "password", "ada", "--remove"], "UserPasswordCommand"),
            (["user", "sign-in", "ada", "--keep-signed-in", "--token-file", "t"], "UserSignInCommand"),
            (["user", "sign-out"], "UserSignOutCommand"),
            (["key", "create", "--user", "ada", "--output", "k.pem"], "KeyCreateCommand"),
            (["key", "list"], "KeyListCommand"), (["key", "revoke", "ab"], "KeyRevokeCommand"),
            (["role", "list"], "RoleListCommand"), (["role", "grant", "Editors", "ada"], "RoleGrantCommand"),
            (["role", "revoke", "Editors", "ada"], "RoleRevokeCommand"),
            (["limits", "show", "--cluster"], "LimitsShowCommand"),
            (["limits", "set", "requestsPerSecond=40", "userBytes=default"], "LimitsSetCommand"),
            (["limits", "explain", "--database", "private", "--user", "ada"], "LimitsExplainCommand"),
            (["usage", "--verify", "--zones"], "UsageCommand"), (["audit", "show", "--last", "5"], "AuditShowCommand"),
            (["audit", "verify", "--expect", "1:" + String(repeating: "0f", count: 32)], "AuditVerifyCommand"),
            (["provider", "list"], "ProviderListCommand"), (["provider", "remove", "x"], "ProviderRemoveCommand"),
            (["provider", "add", "x", "--issuer", "https://i.example", "--client-id", "c"], "ProviderAddCommand"),
            (["provider", "add", "x", "--issuer", "http://127.0.0.1:99/a", "--client-id", "c"], "ProviderAddCommand"),
            (
                ["provider", "add", "x", "--issuer", "https://i.example", "--client-id", "c", "--no-allow-sign-up"],
                "ProviderAddCommand"
            ),
            (
                ["user", "create", "ada", "--identity-issuer", "https://i.example", "--identity-subject", "1"],
                "UserCreateCommand"
            ),
            (["user", "update", "ada", "--no-identity"], "UserUpdateCommand"),
            (["token", "list", "--kind", "api", "--kind", "sign-in"], "TokenListCommand"),
            (["sign-up"], "SignUpStatusCommand"), (["sign-up", "open"], "SignUpOpenCommand"),
            (["sign-up", "close"], "SignUpCloseCommand"),
            (
                ["token", "create", "--api", "--origin", "https://a.example", "--origin", "http://localhost:8080"],
                "TokenCreateCommand"
            ), (["token", "create", "--api", "--callback", "myapp://signed-in"], "TokenCreateCommand"),
        ])
    func known(arguments: [String], type: String) throws {
        #expect("\(Swift.type(of: try Zonekeeper.parseAsRoot(arguments)))" == type)
    }

    @Test(
        "What is missing or does not go together is refused before anything is sent",
        arguments: [
            ["user", "create", "ada", "--password", "--password-stdin"], ["user", "password"],
            ["user", "password", "ada", "--remove", "--password-stdin"], ["user", "sign-in"],
            ["key", "create", "--user", "ada"], ["key", "create", "--output", "k.pem"],
            ["key", "create", "--user", "ada", "--output", "k", "--public-key", "p"], ["key", "revoke"],
            ["role", "grant", "Editors"], ["role", "grant", "_world", "ada"], ["limits", "set"],
            ["limits", "set", "requestsPerSecond=40", "requestsPerSecond=41"],
            ["limits", "explain", "--database", "private"], ["audit", "show", "--all", "--last", "5"],
            ["audit", "show", "--last", "0"], ["audit", "verify", "--expect", "1:0f"],
            ["audit", "verify", "--expect", "0:" + String(repeating: "0f", count: 32)],
            ["provider", "add", "x", "--issuer", "http://i.example", "--client-id", "c"],
            ["provider", "add", "x", "--issuer", "https://i.example"],
            [
                "provider", "add", "x", "--issuer", "https://i.example", "--client-id", "c", "--public-client",
                "--client-secret-file", "f",
            ],
            ["user", "create", "ada", "--identity-issuer", "https://i.example"], ["user", "update", "ada"],
            ["user", "update", "ada", "--no-identity", "--identity-issuer", "https://i", "--identity-subject", "1"],
            ["token", "list", "--kind", "other"],
            ["token", "create", "--session", "--user", "ada", "--origin", "https://a.example"],
            ["token", "create", "--api", "--origin", "https://a.example/"],
            ["token", "create", "--api", "--origin", "a.example"], ["token", "create", "--api", "--origin", "*"],
            ["token", "create", "--api", "--origin", "https://A.example"],
            ["token", "create", "--api", "--callback", "javascript:alert(1)"],
            ["token", "create", "--api", "--callback", "/signed-in"], ["zone", "list", "--timeout", "soon"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try Zonekeeper.parseAsRoot(arguments) }
    }

    @Test(
        "Limits are written as numbers, amounts and words",
        arguments: [
            ("requestsPerSecond=40", ContainerLimit.requestsPerSecond, 40),
            ("REQUESTSPERSECOND=1000000", .requestsPerSecond, 1_000_000), ("userBytes=5GB", .userBytes, 5_000_000_000),
            ("userBytes=5 gb", .userBytes, 5_000_000_000), ("databaseBytes=2.5MB", .databaseBytes, 2_500_000),
            ("databaseBytes=64KiB", .databaseBytes, 65_536), ("databaseBytes=1.5KiB", .databaseBytes, 1_536),
            ("userBytes=0", .userBytes, 0), ("userBytes=unlimited", .userBytes, .max),
            ("userRecords=Unlimited", .userRecords, .max), ("userRecords=12", .userRecords, 12),
            ("assetBytesMax=9.2EB", .assetBytesMax, nil), ("userBytes=default", .userBytes, nil),
        ] as [(String, ContainerLimit, Int64?)])
    func limitValues(text: String, limit: ContainerLimit, value: Int64?) throws {
        if text.hasSuffix("EB") {
            #expect(throws: ValidationError.self) { try LimitAssignment(parsing: text) }
        } else {
            let assignment = try LimitAssignment(parsing: text)
            #expect(assignment.limit == limit)
            #expect(assignment.value == value)
        }
    }

    @Test(
        "A limit that cannot be is refused with what would be right",
        arguments: [
            ("requestsPerSecond", "name=value"), ("speed=1", "there are requestsPerSecond, "),
            ("requestsPerSecond=0", "1 to 1,000,000 requests/s"), ("requestsPerSecond=1000001", "1 to 1,000,000"),
            ("requestsPerSecond=40kB", "1 to 1,000,000"), ("requestsPerSecond=1.5", "1 to 1,000,000"),
            ("requestsPerSecond=unlimited", "cannot be unlimited"), ("requestsPerSecond=", "'default'"),
            ("userBytes=-1", "such as 10GB"), ("userBytes=10 lots", "such as 10GB"), ("userBytes=0.5", "such as 10GB"),
            ("userBytes=1,5GB", "such as 10GB"), ("userBytes=99999999PB", "such as 10GB"),
            ("userBytes=1..5GB", "such as 10GB"), ("userRecords=5MB", "a number of records"),
        ])
    func wrongLimits(text: String, expected: String) {
        let error = #expect(throws: ValidationError.self) { try LimitAssignment(parsing: text) }
        #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
    }

    @Test("Limits are shown with their units and where they come from")
    func limitsShown() throws {
        let answer = try json(
            #"{"container":"c","users":1200,"limits":[{"name":"requestsPerSecond","value":40,"source":"default","#
                + #""unit":"requests/s"},{"name":"userBytes","value":5000000000,"source":"container","unit":"bytes"},"#
                + #"{"name":"userRecords","value":9223372036854775807,"source":"cluster","unit":"records"}],"#
                + #""effective":{"requestsPerSecond":41,"databaseBytes":3100000000}}"#)
        #expect(
            LimitsShowCommand.text(answer) == """
                container c, 1,200 users

                LIMIT              VALUE          SET FOR
                requestsPerSecond  40 requests/s
                userBytes          5 GB           the container
                userRecords        unlimited      the cluster

                IN FORCE           VALUE
                requestsPerSecond  41 requests/s
                databaseBytes      3.1 GB
                """)
        #expect(LimitsSetCommand.line(try LimitAssignment(parsing: "userBytes=1GB"), "c") == "c: userBytes is 1 GB")
        #expect(
            LimitsSetCommand.line(try LimitAssignment(parsing: "userBytes=default"), "c")
                == "c: userBytes is as by default")
    }

    @Test("Alerts say what is wrong, where and what to do; all rules are shown where that is asked for")
    func alerts() throws {
        let answer = try json(
            #"{"time":1,"firing":1,"rules":[{"name":"elections","title":"A group elects","advice":"Look.","#
                + #""severity":"ticket","measure":"above","minutes":0,"limit":"alertElections","unit":"elections","#
                + #""ofContainers":false,"threshold":5,"source":"cluster","state":"firing","value":9,"alerts":[{"#
                + #""state":"firing","node":2,"value":9,"threshold":5,"since":0,"detail":"group 3"}]},{"#
                + #""name":"diskSpace","title":"A disk","advice":"Make room.","severity":"ticket","measure":"below","#
                + #""minutes":5,"limit":"alertDiskFreePercent","unit":"%","ofContainers":false,"threshold":10,"#
                + #""source":"default","state":"ok","value":60,"alerts":[]},{"name":"clock","title":"A clock","#
                + #""advice":"Set it.","severity":"ticket","measure":"above","minutes":5,"unit":"ms","limit":"#
                + #""alertClockMilliseconds","ofContainers":false,"threshold":0,"source":"cluster","state":"off","#
                + #""alerts":[]}],"nodes":[{"node":2},{"node":3,"problem":"node 3 cannot be reached"}],"#
                + #""leftOut":7,"unknownRules":["gravity","tides"]}"#)
        let text = AlertsCommand.text(answer, hasRules: false, isOfOne: false)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines[0] == "A group elects (elections, ticket)")
        #expect(lines[1].hasPrefix("    firing  since ") && lines[1].hasSuffix("  node 2  9 elections  group 3"))
        #expect(lines[2...4] == ["    Look.", "", "3 rules: 1 firing, 1 ok, 1 off"])
        #expect(lines[5] == "7 more alerts are not told" && lines[6].hasSuffix("gravity, tides"))
        #expect(lines[7].contains("node 3 cannot be reached"))
        let all = AlertsCommand.text(answer, hasRules: true, isOfOne: false)
        #expect(all.contains("at most 10 %, for 5 minutes") && all.contains("off") && all.hasSuffix(text))
        // Where one container was named, naming one does not help.
        let errors = try json(
            #"{"rules":[{"name":"errors","ofContainers":true,"alerts":[{"node":1,"since":0}]}],"nodes":[],"leftOut":7}"#
        )
        let hint = "--one-container"
        #expect(AlertsCommand.text(errors, hasRules: false, isOfOne: false).contains(hint))
        #expect(!AlertsCommand.text(errors, hasRules: false, isOfOne: true).contains(hint))
    }

    @Test("An explanation says what refuses, why, and when that passes")
    func explained() throws {
        // As the server says it.
        let answer = try json(
            #"{"rules":[{"name":"requests","limit":40,"remaining":0,"resetSeconds":0.337,"fires":true,"#
                + #""reason":"requests a second of the container, over all nodes"},{"name":"databaseBytes","#
                + #""limit":100000000,"used":1234567,"remaining":98765433,"fires":false,"reason":"bytes"}],"#
                + #""verdict":"refused by requests: requests a second of the container, over all nodes"}"#)
        #expect(
            LimitsExplainCommand.text(answer) == """
                RULE           LIMIT          USED    LEFT        RESETS IN  REFUSES
                requests       40 requests/s          0 requests  0.34 s     yes
                databaseBytes  100 MB         1.2 MB  98.7 MB                no

                requests: requests a second of the container, over all nodes
                refused by requests: requests a second of the container, over all nodes
                """)
    }

    /// Runs a command against a server that answers the same each time but for the pages of lists, and says what it was
    /// asked.
    private func run(
        _ arguments: [String], _ answer: @escaping @Sendable (ScriptedRequest, Int) -> ScriptedAnswer
    ) async throws -> [ScriptedRequest] {
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            return try await ScriptedServer.running(answer) { server in
                let command = try Zonekeeper.parseAsRoot(
                    arguments + ["--url", server.url, "--admin-token-file", secret])
                var asynchronous = try #require(command as? any AsyncParsableCommand)
                try await asynchronous.run()
                return server.requests
            }
        }
    }

    @Test("Deleting all matches asks for the container's name once more; with another one the server is asked nothing")
    func confirmed() async throws {
        let arguments = ["job", "delete", "--type", "T", "--all", "--container", "c", "--confirm"]
        for wrong in ["", "d", "C"] {
            await #expect(throws: ValidationError.self, "\(wrong)") {
                try await run(arguments + [wrong]) { request, _ in
                    Issue.record("asked for \(request.target)")
                    return ScriptedAnswer()
                }
            }
        }
        let requests = try await run(arguments + ["c"]) { _, _ in
            ScriptedAnswer(body: #"{"id": "1-0", "state": "done", "kind": "delete", "records": 3, "left": 0}"#)
        }
        #expect(requests.map(\.path) == ["/admin/1/jobs/delete"])
    }

    @Test("Taking an administrator's token away says so, and what else they have")
    func administratorsToken() async throws {
        let team = [
            try json(#"{"name": "ada", "role": "viewer", "containers": ["a", "b"]}"#),
            try json(#"{"name": "grace", "role": "admin", "containers": null}"#),
        ]
        func line(_ name: String) -> String { AdministratorRemoveCommand.line(name, team) }
        #expect(line("eve") == "the token of eve is revoked")
        #expect(
            line("ada")
                == "the token of ada is revoked; ada is still viewer of a, b, "
                + "`zonekeeper administrator delete ada` ends that"
        )
        #expect(line("grace").contains("grace is still admin of the cluster, "))
        let tokens = #"{"tokens": [{"id": "t", "kind": "administrator", "name": "ada"}]}"#
        let requests = try await run(["administrator", "remove", "ada"]) { request, _ in
            ScriptedAnswer(body: request.path.hasSuffix("tokens") ? tokens : #"{"administrators": []}"#)
        }
        #expect(requests.map(\.method) == ["GET", "DELETE", "GET"])
        #expect(requests.map(\.path) == ["tokens", "tokens", "administrators"].map { "/admin/1/\($0)" })
        let failure = await #expect(throws: CommandFailure.self) {
            try await run(["administrator", "remove", "grace"]) { _, _ in ScriptedAnswer(body: tokens) }
        }
        #expect(failure?.message.hasPrefix("grace has no token") == true)
    }

    @Test(
        "Tokens are listed page after page, without sign-in sessions unless they are asked for",
        arguments: [
            ([], "api%2Csession"), (["--kind", "sign-in"], "sign-in"), (["--kind", "all"], nil),
            (["--kind", "session", "--kind", "sign-in"], "session%2Csign-in"),
        ] as [([String], String?)])
    func tokenPages(arguments: [String], kinds: String?) async throws {
        let requests = try await run(["token", "list", "--container", "c"] + arguments) { _, earlier in
            ScriptedAnswer(body: earlier == 0 ? #"{"tokens":[],"next":"1/a"}"# : #"{"tokens":[]}"#)
        }
        #expect(requests.map { $0.parameter("kind") } == [kinds, kinds])
        #expect(requests.map { $0.parameter("after") } == [nil, "1%2Fa"])
        #expect(requests.allSatisfy { $0.parameter("container") == "c" })
    }

    @Test("Users are listed page after page")
    func userPages() async throws {
        let requests = try await run(["user", "list"]) { _, earlier in
            ScriptedAnswer(body: earlier == 0 ? #"{"users":[],"next":"ada"}"# : #"{"users":[]}"#)
        }
        #expect(requests.map { $0.parameter("after") } == [nil, "ada"])
    }

    @Test(
        "What is left out of a provider or a user is not sent, so that it stays; what is taken away is null",
        arguments: [
            ([], "", ""), (["--allow-sign-up"], "allowsSignUp", "true"),
            (["--no-allow-sign-up"], "allowsSignUp", "false"), (["--public-client"], "clientSecret", "null"),
        ])
    func providerBody(arguments: [String], key: String, value: String) async throws {
        let provider = ["provider", "add", "x", "--issuer", "https://i.example", "--client-id", "c"]
        let requests = try await run(provider + arguments) { _, _ in ScriptedAnswer() }
        let body = String(decoding: try #require(requests.first).body, as: UTF8.self)
        let more = key.isEmpty ? "" : #","\#(key)":\#(value)"#
        #expect(body == #"{"name":"x","issuer":"https://i.example","clientID":"c"\#(more)}"#)
    }

    @Test("A user is made known to an identity provider, and unknown again")
    func identity() async throws {
        let options = ["--identity-issuer", "https://i.example", "--identity-subject", "1"]
        for (arguments, expected) in [
            (["user", "create", "ada"] + options, #""identity":{"issuer":"https://i.example","subject":"1"}"#),
            (["user", "update", "ada"] + options, #"{"identity":{"issuer":"https://i.example","subject":"1"}}"#),
            (["user", "update", "ada", "--no-identity"], #"{"identity":null}"#),
        ] {
            let requests = try await run(arguments) { _, _ in ScriptedAnswer() }
            #expect(String(decoding: try #require(requests.first).body, as: UTF8.self).contains(expected))
        }
    }

    @Test("Roles and tokens are listed with what matters of them")
    func lists() throws {
        let roles = try json(#"[{"name":"Editors","members":["ada","bob"]},{"name":"Empty","members":[]}]"#)
        let table = Table(roles.array ?? [], RoleListCommand.columns)
        #expect(table.text == "ROLE     MEMBERS\nEditors  ada, bob\nEmpty    (none)")
        let plain = try json(#"[{"id":"1","kind":"session","container":"c","user":"ada","created":0,"label":"x"}]"#)
        #expect(
            TokenListCommand.table(plain.array ?? []) == """
                ID  KIND     CONTAINER  ENVIRONMENT  USER  CREATED               EXPIRES  USED  BY  LABEL
                1   session  c                       ada   1970-01-01T00:00:00Z                     x
                """)
        let web = try json(#"[{"id":"1","kind":"api","created":0,"label":"","origins":["https://a","https://b"]}]"#)
        #expect(TokenListCommand.table(web.array ?? []).contains("ORIGINS              LABEL\n"))
        #expect(TokenListCommand.table(web.array ?? []).contains("https://a https://b"))
    }
}
