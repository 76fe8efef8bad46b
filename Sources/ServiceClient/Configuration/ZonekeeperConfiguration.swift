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
    /// more keep working when it is down. With `http` only those of this machine, unless `allowsUnencryptedConnections`.
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
    /// Whether URLs with `http` may name other machines: everybody on the way can read and change what goes there, tokens
    /// and data. For networks that encrypt by themselves.
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
