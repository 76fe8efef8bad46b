import ArgumentParser
import AsyncHTTPClient
import Foundation
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

@Suite("Reaching a cluster")
struct ConnectionTests {
    private func settings(_ arguments: [String], _ variables: [String: String] = [:]) throws -> ConnectionSettings {
        try ConnectionOptions.parse(arguments).resolved(variables)
    }

    @Test("URLs may be repeated or have commas between them")
    func urls() throws {
        #expect(
            try settings(["--url", "https://a:1,https://b:2/", "--url", "https://c:3"]).urls
                == ["https://a:1", "https://b:2", "https://c:3"])
        #expect(
            try settings([], ["ZONEKEEPER_URLS": "https://a:1, https://b:2"]).urls == ["https://a:1", "https://b:2"])
        #expect(try settings([]).urls == ["https://127.0.0.1:24000"])
    }

    @Test("An option counts more than its variable, and an empty variable is none")
    func precedence() throws {
        let variables = [
            "ZONEKEEPER_CONTAINER": "one", "ZONEKEEPER_API_TOKEN": "", "ZONEKEEPER_WEB_AUTH_TOKEN": "session",
        ]
        let settings = try settings(["--container", "two"], variables)
        #expect(settings.container == "two")
        #expect(settings.apiToken == nil)
        #expect(settings.webAuthToken == "session")
        #expect(settings.environment == "development")
    }

    @Test("An option that took a secret says what to do instead, and no help shows it")
    func formerOptions() {
        for (option, variable) in [("--api-token", "API_TOKEN"), ("--web-auth-token", "WEB_AUTH_TOKEN")] {
            let errors: [(any Error)?] = [
                #expect(throws: (any Error).self) { try ClientOptions.parse([option, "t"]) },
                #expect(throws: (any Error).self) { try LoadCommand.parse([option, "t"]) },
            ]
            for error in errors {
                let text = error.map { ClientOptions.message(for: $0) } ?? ""
                #expect(text.contains("\(option)-file") && text.contains("ZONEKEEPER_\(variable)"), "\(text)")
            }
        }
        for help in [Zonekeeper.helpMessage(for: ZoneListCommand.self), LoadCommand.helpMessage()] {
            let words = help.split(whereSeparator: \.isWhitespace)
            #expect(words.contains("--api-token-file") && words.contains("--web-auth-token-file"))
            #expect(!words.contains("--api-token") && !words.contains("--web-auth-token"))
        }
    }

    @Test("An API token comes from its file, else from the variable, and is missed where neither has it")
    func apiTokens() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/api"
            try PrivateFile.create(path, "from-file\n")
            let variables = ["ZONEKEEPER_API_TOKEN": "from-variable"]
            #expect(try settings([], variables).requiredAPIToken() == "from-variable")
            #expect(try settings(["--api-token-file", path], variables).requiredAPIToken() == "from-file")
            #expect(throws: ValidationError.self) { try settings([]).requiredAPIToken() }
            // One that is gone fails what needs it, not what reads the options.
            let gone = try settings(["--api-token-file", folder + "/none"], variables)
            #expect(throws: ServiceClientError.self) { try gone.requiredAPIToken() }
        }
    }

    @Test("A file of the administrator's token that is not there is named, and missed only where it is needed")
    func administratorToken() async throws {
        let http = try ServiceClient.http(authority: nil)
        func error(_ variables: [String: String]) throws -> String? {
            let connection = Connection(
                settings: try settings([], variables),
                client: ServiceClient(http: http, urls: [], administratorSecret: nil))
            return #expect(throws: ValidationError.self) { try connection.needAdministrator() }?.message
        }
        #expect(try error(["ZONEKEEPER_ADMIN_TOKEN_FILE": "/nonexistent"])?.contains("names /nonexistent, ") == true)
        #expect(try error([:])?.contains("--admin-token-file") == true)
        try await http.shutdown()
    }

    @Test("A port that there is not is an error of the URL; it ended the process, or another port was asked")
    func impossiblePorts() async throws {
        let http = try ServiceClient.http(authority: nil)
        for port in ["0", "65536", "240000", "99999999999999999999", "x"] {
            let url = "https://127.0.0.1:\(port)"
            let error = await #expect(throws: ServiceUnreachable.self) {
                try await ServiceClient(http: http, urls: [url]).send(ServiceRequest(.get, "/a:b/c"))
            }
            #expect(error?.description == "\(url): is no URL such as https://127.0.0.1:24000")
        }
        for url in ["https://a", "https://a:1/b:c?d:e", "https://[::1]", "https://[::1]:65535/", "https://a:/"] {
            #expect(ServiceClient.hasPort(url), "\(url)")
        }
        try await http.shutdown()
    }

    @Test("An authority's file that is not there is told from one without a certificate")
    func authority() async throws {
        try await TemporaryFolder.with { folder in
            func error(_ path: String) -> String? {
                #expect(throws: ServiceClientError.self) { try ServiceClient.tls(authority: path) }?.message
            }
            #expect(error(folder + "/none")?.hasSuffix("cannot be read: No such file or directory") == true)
            try PrivateFile.create(folder + "/text", "text\n")
            #expect(error(folder + "/text")?.hasSuffix("holds no certificate in PEM") == true)
        }
    }

    @Test("An environment that there is not is refused")
    func environment() {
        #expect(throws: ValidationError.self) { try settings(["--environment", "staging"]) }
    }

    @Test("Parameters are encoded byte by byte")
    func encoding() {
        #expect(PercentCoding.encode("aZ09-._~") == "aZ09-._~")
        #expect(PercentCoding.encode("a b+c/é\n") == "a%20b%2Bc%2F%C3%A9%0A")
        var request = ServiceRequest(.get, "/admin/1/users")
        #expect(request.target == "/admin/1/users")
        request.parameters = [("name", "a&b"), ("x", "")]
        #expect(request.target == "/admin/1/users?name=a%26b&x=")
    }

    @Test("A failure of the server is its code and reason")
    func failures() throws {
        let body = Array(#"{"serverErrorCode":"EXISTS","reason":"it is there","uuid":"u"}"#.utf8)
        let error = #expect(throws: CommandFailure.self) { try ServiceResponse(status: 409, body: body).checked() }
        #expect(error?.message == "EXISTS: it is there")
        #expect(throws: CommandFailure.self) { try ServiceResponse(status: 502, body: Array("<html>".utf8)).checked() }
        #expect(try ServiceResponse(status: 200, body: body).checked().status == 200)
        let records = try ServiceResponse(status: 200, body: body).json()
        #expect(
            ServiceResponse.failures(in: [records, .members(["recordName": .string("r")])]) == ["EXISTS: it is there"])
    }

    @Test("An idempotency key is a UUID of version 7 that begins with its time")
    func idempotencyKeys() throws {
        let key = IdempotencyKeys.make(now: 0x0123_4567_89AB)
        #expect(key.hasPrefix("01234567-89AB-7"))
        let uuid = try #require(UUID(uuidString: key)).uuid
        #expect(uuid.6 >> 4 == 7)
        #expect(uuid.8 >> 6 == 2)
        #expect(IdempotencyKeys.make(now: 5) != IdempotencyKeys.make(now: 5))
    }

    @Test("A server key signs for public data only; an option with tokens counts more than its variable")
    func serverKeys() async throws {
        try await TemporaryFolder.with { folder in
            let (path, session) = (folder + "/key.pem", folder + "/session")
            try PrivateFile.create(path, OpenSSL.samplePrivateKey)
            try PrivateFile.create(session, "two\n")
            let variables = [
                "ZONEKEEPER_KEY_FILE": path, "ZONEKEEPER_KEY_ID": "ab", "ZONEKEEPER_WEB_AUTH_TOKEN_FILE": session,
            ]
            func settings(_ arguments: String...) throws -> ConnectionSettings {
                try ClientOptions.parse(["--container", "c"] + arguments).resolved(variables)
            }
            #expect(try settings().serverKey?.id == "ab")
            #expect(try settings("--key-id", "cd").serverKey?.id == "cd")
            #expect(try settings("--api-token-file", "t").serverKey == nil)
            #expect(try settings().session?.token().current == "two")
            try PrivateFile.create(folder + "/other", "one\n")
            #expect(try settings("--web-auth-token-file", folder + "/other").session?.token().current == "one")
            #expect(try settings("--timeout", "1m").patienceSeconds == 60)
            #expect(throws: ValidationError.self) { try settings("--key-file", path, "--api-token-file", "t") }
            // A file that is gone fails what needs it, and nothing else.
            let gone = try settings("--key-file", folder + "/none")
            let goneKey = try #require(gone.serverKey)
            #expect(throws: ServiceClientError.self) { try ServerKeyFile(path: goneKey.path, id: goneKey.id ?? "ab") }
            try FileManager.default.removeItem(atPath: session)
            let signedOut = try settings()
            #expect(throws: ServiceClientError.self) { try signedOut.session?.token() }
            let keyOnly = ["ZONEKEEPER_KEY_FILE": path, "ZONEKEEPER_KEY_ID": "ab"]
            let http = try ServiceClient.http(authority: nil)
            let connection = Connection(
                settings: try ClientOptions.parse(["--container", "c"]).resolved(keyOnly),
                client: ServiceClient(http: http, urls: [], administratorSecret: nil))
            let request = try connection.request("public", "records/query", .object([]))
            #expect(request.target == "/database/1/c/development/public/records/query")
            let error = #expect(throws: ValidationError.self) {
                try connection.request("private", "records/query", .object([]))
            }
            #expect(error?.message.contains("A server key reaches public data only") == true)
            #expect(throws: ValidationError.self) { try connection.preferencesRequest("get", .object([])) }
            try await http.shutdown()
        }
    }
}
