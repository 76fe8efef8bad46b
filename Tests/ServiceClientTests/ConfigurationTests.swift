import Foundation
import TestSupport
import Testing

@testable import ServiceClient

@Suite("Where a cluster is, and who speaks")
struct ConfigurationTests {
    private func read(_ variables: [String: String]) throws -> ZonekeeperConfiguration {
        try ZonekeeperConfiguration(variables: variables)
    }

    private func message(_ variables: [String: String]) -> String {
        do {
            return "none: \(try read(variables))"
        } catch {
            return "\(error)"
        }
    }

    @Test("Variables say everything; URLs have commas between them")
    func variables() throws {
        let configuration = try read([
            "ZONEKEEPER_URLS": "https://a:1, https://b:2/", "ZONEKEEPER_CA": "ca.pem", "ZONEKEEPER_CONTAINER": "c",
            "ZONEKEEPER_ENVIRONMENT": "production", "ZONEKEEPER_API_TOKEN": "api",
            "ZONEKEEPER_WEB_AUTH_TOKEN_FILE": "f",
            "ZONEKEEPER_DISTANCE_UNIT": "metres",
        ])
        #expect(configuration.urls == ["https://a:1", "https://b:2"])
        #expect(configuration.certificateAuthorityPath == "ca.pem" && configuration.container == "c")
        #expect(configuration.environment == .production && configuration.distanceUnit == .metres)
        #expect(configuration.apiToken == "api" && configuration.webAuthTokenFile == "f")
        let least = try read(["ZONEKEEPER_URLS": "https://a", "ZONEKEEPER_CONTAINER": "c", "ZONEKEEPER_API_TOKEN": ""])
        #expect(least.environment == .development && least.distanceUnit == .kilometres && least.apiToken == nil)
    }

    @Test("A file says what variables do not; its paths are relative to it")
    func file() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/app.json"
            let text =
                #"{"urls":["https://a"],"ca":"certs/ca.pem","container":"c","apiToken":"one","webAuthTokenFile":"/t"}"#
            try PrivateFile.create(path, text)
            let configuration = try read(["ZONEKEEPER_CONFIG": path, "ZONEKEEPER_API_TOKEN": "two"])
            #expect(configuration.urls == ["https://a"] && configuration.apiToken == "two")
            #expect(configuration.certificateAuthorityPath == folder + "/certs/ca.pem")
            #expect(configuration.webAuthTokenFile == "/t")
            for (text, part) in [
                ("{", "is not JSON"), ("[]", "an object such as"), (#"{"urls":"x","container":"c"}"#, "'urls'"),
                (#"{"urls":["https://a"]}"#, "'container' in \(path)"),
                (#"{"urls":["https://a"],"container":"c","environment":"test"}"#, "'development' or 'production'"),
                (#"{"urls":["https://a"],"container":"c","enviroment":"production"}"#, "'enviroment' is no member"),
            ] {
                try PrivateFile.replace(path, with: text)
                #expect(message(["ZONEKEEPER_CONFIG": path]).contains(part), "\(text)")
            }
        }
    }

    @Test("A session that a variable names counts more than one of the file, in either form")
    func sessions() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder + "/app.json"
            let place = #""urls":["https://a"],"container":"c""#
            try PrivateFile.create(path, #"{\#(place),"webAuthToken":"theirs"}"#)
            #expect(try read(["ZONEKEEPER_CONFIG": path]).webAuthToken == "theirs")
            let named = try read(["ZONEKEEPER_CONFIG": path, "ZONEKEEPER_WEB_AUTH_TOKEN_FILE": "/mine"])
            #expect(named.webAuthToken == nil && named.webAuthTokenFile == "/mine")
            try PrivateFile.replace(path, with: #"{\#(place),"webAuthTokenFile":"/theirs"}"#)
            let token = try read(["ZONEKEEPER_CONFIG": path, "ZONEKEEPER_WEB_AUTH_TOKEN": "mine"])
            #expect(token.webAuthToken == "mine" && token.webAuthTokenFile == nil)
        }
    }

    @Test("What is missing or wrong is said, with where to set it")
    func mistakes() {
        #expect(message([:]).contains("set ZONEKEEPER_CONTAINER"))
        #expect(message(["ZONEKEEPER_CONTAINER": "c"]).contains("set ZONEKEEPER_URLS"))
        let wrong = message(["ZONEKEEPER_CONTAINER": "c", "ZONEKEEPER_URLS": "127.0.0.1:24000"])
        #expect(wrong.contains("'127.0.0.1:24000' is no URL"))
        let far = message(["ZONEKEEPER_CONTAINER": "c", "ZONEKEEPER_URLS": "https://127.0.0.1:240000"])
        #expect(far.contains("'https://127.0.0.1:240000' is no URL"))
        #expect(message(["ZONEKEEPER_CONFIG": "/nowhere/app.json"]).contains("/nowhere/app.json cannot be read"))
    }

    @Test("Unencrypted requests go to this machine only, unless somebody says that they may go further")
    func unencrypted() throws {
        for host in ["127.0.0.1:1", "127.8.9.10", "localhost:24000", "LocalHost", "[::1]:8"] {
            let variables = ["ZONEKEEPER_URLS": "http://\(host)", "ZONEKEEPER_CONTAINER": "c"]
            #expect(try read(variables).urls == ["http://\(host)"])
        }
        let far = ["a.example", "10.0.0.1", "127.0.0.1.example", "127.0.0", "128.0.0.1", "localhost.example", "[::2]"]
        for host in far {
            var variables = ["ZONEKEEPER_URLS": "https://a,http://\(host):80", "ZONEKEEPER_CONTAINER": "c"]
            #expect(message(variables).contains("'http://\(host):80' would send tokens"), "\(host)")
            variables["ZONEKEEPER_UNENCRYPTED"] = "yes"
            #expect(message(variables).contains("'allowed' or nothing is expected, not 'yes'"))
            variables["ZONEKEEPER_UNENCRYPTED"] = "allowed"
            #expect(try read(variables).urls.count == 2)
        }
        var configuration = ZonekeeperConfiguration(urls: ["http://a"], container: "c")
        #expect(throws: ServiceClientError.self) { try ServiceSession.of(configuration) }
        configuration.allowsUnencryptedConnections = true
        #expect(try ServiceSession.of(configuration).configuration.urls == ["http://a"])
    }

    @Test("Sessions are one for each account, whatever else differs")
    func sessions() throws {
        var configuration = ZonekeeperConfiguration(urls: ["https://a.example"], container: "sessions", apiToken: "t")
        let session = try ServiceSession.of(configuration)
        configuration.patience = .seconds(1)
        configuration.urls = ["https://a.example/"]
        #expect(try ServiceSession.of(configuration) === session)
        #expect(!session.hasUser)
        configuration.webAuthToken = "user"
        #expect(try ServiceSession.of(configuration) !== session)
        #expect(try ServiceSession.of(configuration).hasUser)
    }
}
