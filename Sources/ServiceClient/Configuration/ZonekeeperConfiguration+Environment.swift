import Foundation
import RecordModel

extension ZonekeeperConfiguration {
    /// What the variables of an environment say, and the file that `ZONEKEEPER_CONFIG` names; a variable counts more
    /// than the file, and an empty one is none.
    ///
    /// | variable | member of the file |
    /// |---|---|
    /// | `ZONEKEEPER_URLS`, with commas between | `urls`, an array |
    /// | `ZONEKEEPER_CA` | `ca` |
    /// | `ZONEKEEPER_CONTAINER` | `container` |
    /// | `ZONEKEEPER_ENVIRONMENT` | `environment`: `development` (where nothing is said) or `production` |
    /// | `ZONEKEEPER_API_TOKEN` | `apiToken` |
    /// | `ZONEKEEPER_WEB_AUTH_TOKEN`, `ZONEKEEPER_WEB_AUTH_TOKEN_FILE` | `webAuthToken`, `webAuthTokenFile` |
    /// | `ZONEKEEPER_KEY_FILE`, `ZONEKEEPER_KEY_ID` | `keyFile`, `keyID` |
    /// | `ZONEKEEPER_DISTANCE_UNIT` | `distanceUnit`: `kilometres` or `metres` |
    /// | `ZONEKEEPER_UNENCRYPTED` | `unencrypted`: `allowed` lets URLs with `http` name other machines |
    ///
    /// Paths in the file are relative to the file's folder.
    /// - Throws: an error whose description says which variable or member is missing or wrong.
    public init(variables: [String: String]) throws {
        self = try Self.read(variables)
    }

    static func read(_ variables: [String: String]) throws(ServiceClientError) -> ZonekeeperConfiguration {
        let file = try variables["ZONEKEEPER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }.map {
            path throws(ServiceClientError) in try ConfigurationFile(path: path)
        }
        func value(_ variable: String, _ member: String) throws(ServiceClientError) -> String? {
            if let value = variables["ZONEKEEPER_" + variable], !value.isEmpty { return value }
            return try file?.text(member)
        }
        func path(_ variable: String, _ member: String) throws(ServiceClientError) -> String? {
            if let value = variables["ZONEKEEPER_" + variable], !value.isEmpty { return value }
            return try file?.path(member)
        }
        var urls = (variables["ZONEKEEPER_URLS"] ?? "").split(separator: ",").map(String.init)
        if urls.isEmpty { urls = try file?.texts("urls") ?? [] }
        guard let container = try value("CONTAINER", "container") else {
            throw missing("a container", variable: "ZONEKEEPER_CONTAINER", member: "container", file)
        }
        guard !urls.isEmpty else { throw missing("the nodes' URLs", variable: "ZONEKEEPER_URLS", member: "urls", file) }
        var configuration = ZonekeeperConfiguration(
            urls: urls, certificateAuthorityPath: try path("CA", "ca"), container: container)
        if let name = try value("ENVIRONMENT", "environment") {
            configuration.environment = try choice(name, "ENVIRONMENT", "environment")
        }
        if let name = try value("DISTANCE_UNIT", "distanceUnit") {
            configuration.distanceUnit = try choice(name, "DISTANCE_UNIT", "distanceUnit")
        }
        if let word = try value("UNENCRYPTED", "unencrypted") {
            guard word == "allowed" else {
                throw ServiceClientError(
                    "ZONEKEEPER_UNENCRYPTED (or 'unencrypted' of the configuration file): 'allowed' or nothing is "
                        + "expected, not '\(word)'")
            }
            configuration.allowsUnencryptedConnections = true
        }
        configuration.apiToken = try value("API_TOKEN", "apiToken")
        configuration.webAuthToken = try value("WEB_AUTH_TOKEN", "webAuthToken")
        if configuration.webAuthToken == nil {
            configuration.webAuthTokenFile = try path("WEB_AUTH_TOKEN_FILE", "webAuthTokenFile")
        }
        configuration.serverKeyFile = try path("KEY_FILE", "keyFile")
        configuration.serverKeyID = try value("KEY_ID", "keyID")
        return try configuration.checked()
    }

    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ variable: String, _ member: String
    ) throws(ServiceClientError) -> Choice {
        if let choice = Choice(rawValue: name) { return choice }
        let known = Choice.allCases.map { "'\($0.rawValue)'" }.joined(separator: " or ")
        throw ServiceClientError(
            "ZONEKEEPER_\(variable) (or '\(member)' of the configuration file): \(known) is expected, not '\(name)'")
    }

    private static func missing(
        _ what: String, variable: String, member: String, _ file: ConfigurationFile?
    ) -> ServiceClientError {
        let place = file.map { "'\(member)' in \($0.path)" } ?? "a JSON file named by ZONEKEEPER_CONFIG"
        return ServiceClientError(
            "no configuration names \(what): set \(variable), or \(place), or call ZonekeeperConfiguration.use(_:) "
                + "before the first use")
    }

    /// The same configuration with its URLs in their usual form.
    /// - Throws: if a URL is none, or would send to another machine what everybody can read.
    func checked() throws(ServiceClientError) -> ZonekeeperConfiguration {
        var configuration = self
        configuration.urls = []
        for text in urls {
            var url = text.trimmingCharacters(in: .whitespaces)
            while url.hasSuffix("/") { url.removeLast() }
            guard let parts = URL(string: url), parts.scheme == "https" || parts.scheme == "http",
                let host = parts.host, !host.isEmpty
            else { throw ServiceClientError("'\(text)' is no URL of a node, such as https://127.0.0.1:24000") }
            guard parts.scheme == "https" || allowsUnencryptedConnections || Self.isThisMachine(host) else {
                throw ServiceClientError(
                    "'\(text)' would send tokens and data to another machine for everybody on the way to read: use https; "
                        + "where the network itself encrypts, set allowsUnencryptedConnections, or ZONEKEEPER_UNENCRYPTED "
                        + "to 'allowed'")
            }
            configuration.urls.append(url)
        }
        guard !configuration.urls.isEmpty else {
            throw ServiceClientError("the configuration has no URL of a node, such as https://127.0.0.1:24000")
        }
        guard !container.isEmpty else { throw ServiceClientError("the configuration's container has no name") }
        return configuration
    }

    /// Whether a host of a URL is this machine, by a name or an address that cannot be another's.
    private static func isThisMachine(_ host: String) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name == "::1" || name == "[::1]" { return true }
        let bytes = name.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return bytes.count == 4 && bytes[0] == 127 && !bytes.contains(nil)
    }
}

/// The JSON file that `ZONEKEEPER_CONFIG` names.
private struct ConfigurationFile {
    var path: String
    private var json: JSONValue

    init(path: String) throws(ServiceClientError) {
        self.path = path
        let text = try SecretFile.read(path)
        do throws(JSONError) {
            json = try JSONParser.parse(Array(text.utf8))
        } catch {
            throw ServiceClientError("\(path) is not JSON: \(error)")
        }
        guard case .object = json else {
            throw ServiceClientError("\(path): an object such as {\"urls\": [...]} is expected, not \(json.kind)")
        }
    }

    func text(_ member: String) throws(ServiceClientError) -> String? {
        guard let value = json[member], !value.isNull else { return nil }
        guard let text = value.string else {
            throw ServiceClientError("\(path): '\(member)' is a string, not \(value.kind)")
        }
        return text.isEmpty ? nil : text
    }

    func texts(_ member: String) throws(ServiceClientError) -> [String]? {
        guard let value = json[member], !value.isNull else { return nil }
        let texts = value.array?.compactMap(\.string)
        guard let texts, texts.count == value.array?.count else {
            throw ServiceClientError("\(path): '\(member)' is an array of strings, not \(value.kind)")
        }
        return texts
    }

    func path(_ member: String) throws(ServiceClientError) -> String? {
        guard let text = try text(member) else { return nil }
        if text.hasPrefix("/") { return text }
        return URL(filePath: path).deletingLastPathComponent().appending(path: text).path
    }
}
