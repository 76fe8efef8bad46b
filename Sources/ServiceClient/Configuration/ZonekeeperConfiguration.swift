import Foundation
import RecordModel
import Synchronization
import Wire

/// Where a cluster is, which container an app uses there, and who speaks: what an entitlement and a signed-in device
/// are on other systems.
///
/// It comes from the environment (see `init(variables:)`), or from code:
///
///     ZonekeeperConfiguration.use(
///         ZonekeeperConfiguration(
///             urls: ["https://db-1.example.com", "https://db-2.example.com"], container: "iCloud.com.example.app",
///             apiToken: "..."))
///
/// Without a user's token it reaches what everybody may see of the public database, as a device without an account
/// does.
public struct ZonekeeperConfiguration: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// Nodes of the cluster, such as `https://127.0.0.1:24000`, in the order in which they are tried; one is enough,
    /// more keep working when it is down. With `http` only those of this machine, unless
    /// `allowsUnencryptedConnections`.
    public var urls: [String]
    /// The PEM file of the authority that signed the nodes' certificates; nil where the system trusts it anyway.
    public var certificateAuthorityPath: String?
    /// The container's name, such as `iCloud.com.example.app`; what `CKContainer.default()` is.
    public var container: String
    /// Which of the container's two sets of data and schema.
    public var environment: Environment
    /// Names the container to the server; made by `zonekeeper token create --api`.
    public var apiToken: String?
    /// A user's session, which each answer may replace: good for a process that ends soon, and for tokens that do not
    /// rotate.
    public var webAuthToken: String?
    /// A file with a user's session, which is kept up to date; the way for sessions of the sign-in page.
    public var webAuthTokenFile: String?
    /// The file of a server-to-server key, which signs requests for public data instead of tokens.
    public var serverKeyFile: String?
    /// The server key's id. Without it, the id is read from the file beside the key, whose name ends in `.id`.
    public var serverKeyID: String?
    /// What `distanceToLocation:fromLocation:` in predicates counts in.
    public var distanceUnit: DistanceUnit
    /// How long a request is sent again while the cluster says to come back later; zero is one attempt.
    public var patience: Duration
    /// Whether URLs with `http` may name other machines: everybody on the way can read and change what goes there,
    /// tokens and data. For networks that encrypt by themselves.
    public var allowsUnencryptedConnections = false

    /// A container's two sets of data and schema.
    public enum Environment: String, Hashable, Sendable, CaseIterable {
        /// Takes new record types and fields as they come.
        case development
        /// Takes what the deployed schema has.
        case production
    }

    /// What a distance in a predicate is counted in.
    public enum DistanceUnit: String, Hashable, Sendable, CaseIterable {
        /// As the documentation of CloudKit's queries says.
        case kilometres
        /// As many apps have it.
        case metres
    }

    /// A configuration in code.
    public init(
        urls: [String], certificateAuthorityPath: String? = nil, container: String,
        environment: Environment = .development, apiToken: String? = nil, webAuthToken: String? = nil,
        webAuthTokenFile: String? = nil, distanceUnit: DistanceUnit = .kilometres, patience: Duration = .seconds(10)
    ) {
        self.urls = urls
        self.certificateAuthorityPath = certificateAuthorityPath
        self.container = container
        self.environment = environment
        self.apiToken = apiToken
        self.webAuthToken = webAuthToken
        self.webAuthTokenFile = webAuthTokenFile
        self.distanceUnit = distanceUnit
        self.patience = patience
    }

    /// What can be shown: everything but tokens.
    public var description: String {
        "ZonekeeperConfiguration(\(container), \(environment.rawValue), \(urls.joined(separator: ", ")), "
            + "\(webAuthToken == nil && webAuthTokenFile == nil ? "no user" : "a user"))"
    }

    /// The text for logs.
    public var debugDescription: String { description }

    /// Has no tokens in it either.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }

    /// What says that two configurations speak for one account in one place: all but how requests are made.
    struct Identity: Hashable, Sendable {
        var urls: [String]
        var authority: String?
        var container: String
        var environment: Environment
        var credentials: [String?]
    }

    var identity: Identity {
        Identity(
            urls: urls, authority: certificateAuthorityPath, container: container, environment: environment,
            credentials: [apiToken, webAuthToken, webAuthTokenFile, serverKeyFile, serverKeyID])
    }
}

extension ZonekeeperConfiguration {
    /// The configuration in force: that of `use(_:)`, else the environment's; nil if there is none or it is invalid.
    public static var current: ZonekeeperConfiguration? { try? needed() }

    /// Puts a configuration in force for `CKContainer.default()` and the preferences; nil goes back to the
    /// environment's.
    ///
    /// Where it speaks for another account, or of another place, than the one before,
    /// `Notification.Name("CKAccountChangedNotification")` is posted, on the calling thread. What goes through the
    /// default container from then on speaks for the new account.
    public static func use(_ configuration: ZonekeeperConfiguration?) {
        let before = current?.identity
        ServiceAccount.putInForce(configuration.map { ServiceAccount($0) })
        if before != current?.identity { AccountObservation.tell(.configured) }
    }

    /// The configuration in force.
    package static func needed() throws(ServiceClientError) -> ZonekeeperConfiguration {
        try ServiceAccount.inForce().checked()
    }

    /// Hears of changes of the account until the observation is let go of.
    package static func observeAccount(_ body: @escaping @Sendable (AccountChange) -> Void) -> AccountObservation {
        AccountObservation(body)
    }
}

extension ServiceAccount {
    // Objects, and not values: optimised builds of Swift 6.3 made a wrong value of a global's optional struct of a
    // configuration's size that was nil; a reference is right.
    private struct Chosen {
        var account: ServiceAccount?
        var fromEnvironment: ServiceAccount?
    }

    private static let chosen = Mutex(Chosen())

    /// The account of the configuration in force.
    package static func inForce() throws(ServiceClientError) -> ServiceAccount {
        // Read once: the environment of a process does not change, and a file is not to be read for each container.
        if let account = chosen.withLock({ $0.account ?? $0.fromEnvironment }) { return account }
        let read = ServiceAccount(try ZonekeeperConfiguration.read(ProcessInfo.processInfo.environment))
        return chosen.withLock { chosen in
            let account = chosen.fromEnvironment ?? read
            chosen.fromEnvironment = account
            return account
        }
    }

    fileprivate static func putInForce(_ account: ServiceAccount?) {
        // What is let go of here ends outside of the lock.
        let before = chosen.withLock { chosen in
            defer { chosen.account = account }
            return chosen.account
        }
        _ = before
    }
}

/// What happened to the account that this process speaks for.
package enum AccountChange: Sendable {
    /// Another configuration is in force.
    case configured
    /// The server does not take a session's token any more.
    case signedOut(ServiceSession)
    /// The server takes it again: another program has put a new one into the session's file.
    case signedIn(ServiceSession)
}

/// Hears of changes of the account as long as it lives.
package final class AccountObservation: Sendable {
    private let number: Int

    private struct Observers {
        var bodies: [(number: Int, body: @Sendable (AccountChange) -> Void)] = []
        var next = 0
    }

    private static let observers = Mutex(Observers())

    init(_ body: @escaping @Sendable (AccountChange) -> Void) {
        number = Self.observers.withLock { observers in
            observers.next += 1
            observers.bodies.append((observers.next, body))
            return observers.next
        }
    }

    deinit { cancel() }

    /// Nothing is heard after this, but what is on its way.
    package func cancel() {
        Self.observers.withLock { [number] observers in observers.bodies.removeAll { $0.number == number } }
    }

    /// Tells everybody, in the order in which they began, then the notification centre.
    static func tell(_ change: AccountChange) {
        for (_, body) in observers.withLock(\.bodies) { body(change) }
        NotificationCenter.default.post(name: Notification.Name("CKAccountChangedNotification"), object: nil)
    }
}

extension ZonekeeperConfiguration {
    /// What the variables of an environment say, and the file that `ZONEKEEPER_CONFIG` names; a variable counts more
    /// than the file, and an empty one does not count.
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
    /// Paths in the file are relative to the file's folder. It has no other members.
    /// - Throws: an error whose description says which variable or member is missing or wrong.
    public init(variables: [String: String]) throws {
        self = try Self.read(variables)
    }

    static func read(_ variables: [String: String]) throws(ServiceClientError) -> ZonekeeperConfiguration {
        let file = try variables["ZONEKEEPER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }.map {
            path throws(ServiceClientError) in try ConfigurationFile(path: path)
        }
        let settings = ConfigurationSettings(variables: variables, file: file)
        var urls = (variables["ZONEKEEPER_URLS"] ?? "").split(separator: ",").map(String.init)
        if urls.isEmpty { urls = try file?.texts("urls") ?? [] }
        guard let container = try settings.value("CONTAINER", "container") else {
            throw missing("a container", variable: "ZONEKEEPER_CONTAINER", member: "container", file)
        }
        guard !urls.isEmpty else { throw missing("the nodes' URLs", variable: "ZONEKEEPER_URLS", member: "urls", file) }
        var configuration = ZonekeeperConfiguration(
            urls: urls, certificateAuthorityPath: try settings.path("CA", "ca"), container: container)
        if let name = try settings.value("ENVIRONMENT", "environment") {
            configuration.environment = try choice(name, "ENVIRONMENT", "environment")
        }
        if let name = try settings.value("DISTANCE_UNIT", "distanceUnit") {
            configuration.distanceUnit = try choice(name, "DISTANCE_UNIT", "distanceUnit")
        }
        if let word = try settings.value("UNENCRYPTED", "unencrypted") {
            configuration.allowsUnencryptedConnections = try allowsUnencrypted(word)
        }
        configuration.apiToken = try settings.value("API_TOKEN", "apiToken")
        // A variable with a session's file counts more than a token of the configuration file, too.
        let token = settings.given("WEB_AUTH_TOKEN_FILE") == nil ? try file?.text("webAuthToken") : nil
        configuration.webAuthToken = settings.given("WEB_AUTH_TOKEN") ?? token
        if configuration.webAuthToken == nil {
            configuration.webAuthTokenFile = try settings.path("WEB_AUTH_TOKEN_FILE", "webAuthTokenFile")
        }
        configuration.serverKeyFile = try settings.path("KEY_FILE", "keyFile")
        configuration.serverKeyID = try settings.value("KEY_ID", "keyID")
        return try configuration.checked()
    }

    private static func allowsUnencrypted(_ word: String) throws(ServiceClientError) -> Bool {
        if word == "allowed" { return true }
        throw ServiceClientError(
            "ZONEKEEPER_UNENCRYPTED (or 'unencrypted' of the configuration file): 'allowed' or nothing is expected, "
                + "not '\(word)'")
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

    /// The same configuration with normalized URLs.
    /// - Throws: if a URL is invalid, or would send unencrypted data to another machine.
    func checked() throws(ServiceClientError) -> ZonekeeperConfiguration {
        var configuration = self
        configuration.urls = []
        for text in urls {
            var url = text.trimmingCharacters(in: .whitespaces)
            while url.hasSuffix("/") { url.removeLast() }
            guard let parts = URL(string: url), parts.scheme == "https" || parts.scheme == "http",
                let host = parts.host, !host.isEmpty, ServiceClient.hasPort(url)
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

    /// Whether a URL's host is this machine, by a name or an address that no other machine can have.
    private static func isThisMachine(_ host: String) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name == "::1" || name == "[::1]" { return true }
        let bytes = name.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return bytes.count == 4 && bytes[0] == 127 && !bytes.contains(nil)
    }
}

/// Settings from where they are said: a variable counts more than the file.
private struct ConfigurationSettings {
    var variables: [String: String]
    var file: ConfigurationFile?

    /// A variable's value; nil where it is empty.
    func given(_ variable: String) -> String? {
        variables["ZONEKEEPER_" + variable].flatMap { $0.isEmpty ? nil : $0 }
    }

    func value(_ variable: String, _ member: String) throws(ServiceClientError) -> String? {
        if let value = given(variable) { return value }
        return try file?.text(member)
    }

    func path(_ variable: String, _ member: String) throws(ServiceClientError) -> String? {
        if let value = given(variable) { return value }
        return try file?.path(member)
    }
}

/// The JSON file that `ZONEKEEPER_CONFIG` names.
private struct ConfigurationFile {
    var path: String
    private var json: JSONValue

    private static let members = [
        "urls", "ca", "container", "environment", "apiToken", "webAuthToken", "webAuthTokenFile", "keyFile", "keyID",
        "distanceUnit", "unencrypted",
    ]

    init(path: String) throws(ServiceClientError) {
        self.path = path
        let text = try SecretFile.read(path)
        do throws(JSONError) {
            json = try JSONParser.parse(Array(text.utf8))
        } catch {
            throw ServiceClientError("\(path) is not JSON: \(error)")
        }
        guard case .object(let given) = json else {
            throw ServiceClientError("\(path): an object such as {\"urls\": [...]} is expected, not \(json.kind)")
        }
        // One that is misspelt would be left out without a word, and an app be in another environment.
        if let unknown = given.first(where: { !Self.members.contains($0.key) }) {
            throw ServiceClientError(
                "\(path): '\(unknown.key)' is no member that is known here; there are "
                    + Self.members.joined(separator: ", "))
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

/// Where programs keep what belongs to a user of a container: preferences, long-lived operations.
package enum DataFolder {
    /// The folder of all of it, which need not exist.
    /// - Parameter variables: the process's environment: `ZONEKEEPER_DATA_HOME`, else `XDG_DATA_HOME/zonekeeper`, else
    ///   `~/.local/share/zonekeeper`.
    package static func path(_ variables: [String: String]) -> String {
        if let own = variables["ZONEKEEPER_DATA_HOME"], !own.isEmpty { return own }
        if let data = variables["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/zonekeeper" }
        return (variables["HOME"] ?? NSHomeDirectory()) + "/.local/share/zonekeeper"
    }

    /// A name as a file or folder bears it: letters, digits, `.` and `_` as they are, the first dot and all else as `%`
    /// and two digits.
    package static func fileName(_ name: String) -> String {
        var text = ""
        for byte in name.utf8.prefix(100) {
            let scalar = Unicode.Scalar(byte)
            let isPlain = scalar.properties.isAlphabetic && byte < 0x80 || (0x30...0x39).contains(byte) || byte == 0x5F
            if isPlain || byte == 0x2E && !text.isEmpty {
                text.unicodeScalars.append(scalar)
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        // Long names differ by their checksum.
        return name.utf8.count > 100 ? text + "%" + String(fnv1a(Array(name.utf8)), radix: 16) : text
    }
}
