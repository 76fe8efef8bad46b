import Admission
import ArgumentParser
import Certificates
import Cluster
import CoreMetrics
import Directory
import Foundation
import Logging
import NIOCore
import PeerTransport
import RecordModel
import Service
import Storage
import Telemetry
import WebServices

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run one node, until SIGTERM or SIGINT.",
        discussion: """
            Without --config this is a whole store in one process: data, development certificates, the encryption key \
            and the administrator's token are made in the data folder, and clients are served over HTTPS.

            With --config it is one node of the cluster that the file describes. Its data folder is the \
            file's `data`, which is relative to the file's own folder, with `node-<id>` in it.
            """)

    @Option(help: "The cluster's configuration file.")
    var config: String?

    @Option(help: "Which of the configuration's nodes to run.")
    var node: UInt64?

    @Option(help: "The data folder (default: zonekeeper-data; with --config: node-<id> in the configuration's `data`).")
    var data: String?

    @Option(
        help: ArgumentHelp(
            "Where to listen (default: 127.0.0.1; with --config: the node's `host`).",
            discussion: "With 0.0.0.0 other machines reach it, and a new certificate names this one."))
    var host: String?

    @Option(help: "The client port; without --config only (default: 24000).")
    var port: Int?

    @Option(help: "The peer port, on loopback; without --config only (default: 24100).")
    var peerPort: Int?

    @Option(help: "The folder of the certificates (default: `certs` in the data folder, or beside node-<id>).")
    var certs: String?

    @Option(help: "The file with the administrator's token (default: `admin.token`, beside `certs`).")
    var adminTokenFile: String?

    @Option(
        help:
            "The file with the key that opens encrypted fields (default: `encryption.key` in the certificates' folder)."
    )
    var encryptionKeyFile: String?

    @Option(help: "Another certificate for the client port, PEM.")
    var clientCertificate: String?

    @Option(help: "The key of --client-certificate, PEM.")
    var clientKey: String?

    @Option(
        help: ArgumentHelp(
            "The highest feature level that the node follows (default and most: what this build can).",
            discussion: """
                While a cluster is upgraded it holds new behaviour back, so that the former build can be started again.
                """,
            valueName: "level"))
    var featureLevelMax: UInt64?

    @Flag(
        help: ArgumentHelp(
            "Have every read confirmed by a majority, in place of a leader's lease.",
            discussion: "For machines whose clocks may stand still, as virtual ones do that are paused or moved."))
    var noLeaderLease = false

    @Option(
        help: ArgumentHelp(
            "The most connections of clients at once (default: 4096); three quarters of them may watch.",
            valueName: "count"))
    var connectionsMax: Int?

    @Option(
        help: ArgumentHelp("The most of these of one address (default: 512).", valueName: "count"))
    var connectionsPerAddressMax: Int?

    @Option(
        help: ArgumentHelp(
            "Where browsers and apps find the cluster, such as https://zk.example.com:8443.",
            discussion: """
                URLs in answers begin with it: of the sign-in page, of uploads and downloads, of the web courier. Without \
                it they begin with whatever host the request was sent to.
                """,
            valueName: "url"))
    var origin: String?

    @Flag(
        help: ArgumentHelp(
            "Send webhooks also to addresses of private networks and of this machine.",
            discussion: "Whoever administers a container then reaches services that are near the cluster."))
    var webhooksAllowPrivateAddresses = false

    @Flag(
        name: .customLong("webhooks-allow-http"),
        help: "Send webhooks also over http, which everybody on the way can read and change.")
    var webhooksAllowHTTP = false

    @Option(
        help: ArgumentHelp(
            "What the log of requests may take in memory (default: 16).",
            discussion: "With 0 there is none, and no telemetry and usage by day either.", valueName: "mebibytes"))
    var requestLogMegabytes: Int?

    @OptionGroup(title: "Traces") var traces: TraceOptions

    @Option(help: "A folder with the console's files, in place of those in this program; to work on them.")
    var consoleFiles: String?

    @Option(
        help: ArgumentHelp(
            "trace, debug, info, notice, warning, error or critical (default: warning; with --config: info).",
            discussion: "Requests that failed are logged from info on."), transform: Logger.Level.parse)
    var logLevel: Logger.Level?

    func validate() throws {
        try checkPlace()
        for (name, count) in [
            ("--connections-max", connectionsMax), ("--connections-per-address-max", connectionsPerAddressMax),
        ] {
            if let count, !(16...1_000_000).contains(count) {
                throw ValidationError("\(name): 16 to 1000000 is expected")
            }
        }
        if let requestLogMegabytes, !(0...16_384).contains(requestLogMegabytes) {
            throw ValidationError("--request-log-megabytes: 0 to 16384 is expected")
        }
        if let level = featureLevelMax, !FeatureLevel.supported.contains(FeatureLevel(level)) {
            let levels = FeatureLevel.supported
            throw ValidationError(
                "--feature-level-max: this build follows levels \(levels.lowerBound) to \(levels.upperBound)")
        }
        if let origin {
            guard origin.hasPrefix("https://"), (try? OriginRule.normalized(origin)) != nil else {
                throw ValidationError(
                    "--origin: scheme, host and perhaps a port are expected, such as https://zk.example.com:8443")
            }
        }
        if let consoleFiles, !Paths.exists("\(consoleFiles)/index.html") {
            throw ValidationError("--console-files: \(consoleFiles) has no index.html")
        }
        if (clientCertificate == nil) != (clientKey == nil) {
            throw ValidationError("--client-certificate and --client-key go together")
        }
    }

    private func checkPlace() throws {
        try Paths.checkNotEmpty([
            "--config": config, "--data": data, "--certs": certs, "--admin-token-file": adminTokenFile,
            "--encryption-key-file": encryptionKeyFile,
        ])
        if config == nil, node != nil { throw ValidationError("--node goes with --config") }
        if config != nil {
            if node == nil { throw ValidationError("--config needs --node, the id of the node to run") }
            if port != nil || peerPort != nil {
                throw ValidationError(
                    "--port and --peer-port are for a single node; with --config the file has the ports")
            }
        }
        for (name, port) in [("--port", port), ("--peer-port", peerPort)] {
            if let port, !(1...65_535).contains(port) { throw ValidationError("\(name): 1 to 65535 is expected") }
        }
    }

    func run() async throws {
        // Everything that a node keeps is for its owner only, also what SQLite makes.
        umask(0o077)
        OpenFiles.raiseLimit()
        var plan = if let config, let node { try clusterPlan(config: config, node: node) } else { try singlePlan() }
        plan.origin = try origin.map { try OriginRule.normalized($0) }
        plan.consoleFolder = consoleFiles.map { Paths.absolute($0) }
        plan.settings.version = Zonekeeper.configuration.version
        plan.settings.usesLeases = !noLeaderLease
        plan.traces = traces.apply(to: &plan.settings)
        if let requestLogMegabytes { plan.service.requestLogBytesMax = requestLogMegabytes << 20 }
        plan.service.webhooks.allowsPrivateAddresses = webhooksAllowPrivateAddresses
        plan.service.webhooks.allowsPlainHTTP = webhooksAllowHTTP
        if let connectionsMax { plan.web.limits.connectionsMax = connectionsMax }
        if let connectionsPerAddressMax { plan.web.limits.connectionsPerAddressMax = connectionsPerAddressMax }
        if let featureLevelMax {
            plan.settings.featureLevels = FeatureLevel.supported.lowerBound...FeatureLevel(featureLevelMax)
        }
        // A single node says where it is in its greeting; its log is for what is out of the ordinary.
        let level = logLevel ?? (config == nil ? .warning : .info)
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = level
            return handler
        }
        // What libraries count is shown, too.
        MetricsSystem.bootstrap(plan.settings.metrics)
        var logger = Logger(label: "zonekeeper")
        if config != nil { logger[metadataKey: "node"] = "\(plan.settings.nodeID)" }
        try await NodeRunner(plan: plan, logger: logger).run()
    }

    /// The node of a configuration file. Its certificates and the administrator's token must be there.
    private func clusterPlan(config: String, node id: UInt64) throws -> NodePlan {
        let layout = try ClusterLayout.read(config)
        guard let node = layout.file.nodes.first(where: { $0.id == id }) else {
            let ids = layout.file.nodes.map { "\($0.id)" }.joined(separator: ", ")
            throw CommandFailure("\(config) has no node \(id); it has \(ids)")
        }
        let folder = certs ?? layout.certificates
        guard Paths.exists("\(folder)/node-\(id)/peer.pem") else {
            throw CommandFailure(
                "\(folder)/node-\(id) has no certificates: make them with `zonekeeper certs create --config "
                    + "\(config)`. If that was done on another machine, bring `peer-ca.pem`, `client-ca.pem`, "
                    + "`encryption.key` and node-\(id) here; the authorities' keys (`*-ca.key`) stay where they are")
        }
        let tokenFile = adminTokenFile ?? layout.administratorToken
        guard Paths.exists(tokenFile) else {
            throw CommandFailure(
                "\(tokenFile) is missing: it holds the administrator's token, 64 random characters, the same on "
                    + "every node")
        }
        var plan = plan(
            node, of: layout.file, data: data ?? layout.folder(of: node), certs: folder,
            secret: try AdministratorSecret.read(tokenFile))
        plan.settings.encryptionKey = try encryptionKey(in: folder)
        return plan
    }

    /// A store of one node; what is missing of its files is made.
    private func singlePlan() throws -> NodePlan {
        // A wildcard is where a node listens, not where anyone reaches it.
        let isEverywhere = host.map(ClusterFile.Node.isWildcard) ?? false
        let file = ClusterFile.single(
            data: data ?? "zonekeeper-data", host: isEverywhere ? nil : host, clientPort: port, peerPort: peerPort)
        let node = file.nodes[0]
        // Before anything is made.
        try Self.check("--port", node.clientPort, on: isEverywhere ? "0.0.0.0" : node.host)
        try Self.check("--peer-port", node.peerPort, on: "127.0.0.1")
        let folder = Paths.absolute(file.data)
        do throws(DiskError) {
            try makeFolder(at: folder)
        } catch {
            throw CommandFailure(
                "the data folder \(folder) cannot be made: \(error.reason). Name a folder that this user may write to")
        }
        let certificates = certs ?? folder + "/certs"
        let others = isEverywhere ? MachineNames.all(atIPv4Alone: host != "::") : []
        _ = try CertificateMaking.makeMissing(
            in: certificates, name: file.name, nodes: [(node.id, [node.host] + others)])
        let tokenFile = adminTokenFile ?? folder + "/admin.token"
        try AdministratorSecret.makeIfMissing(at: tokenFile)
        var plan = plan(
            node, of: file, data: folder, certs: certificates, secret: try AdministratorSecret.read(tokenFile))
        plan.settings.encryptionKey = try encryptionKey(in: certificates)
        // The only node has no peers, so nobody needs to reach this port.
        plan.settings.peerListenHost = "127.0.0.1"
        plan.greeting = Self.greeting(
            url: node.clientURL, others: others, authority: certificates + "/client-ca.pem", token: tokenFile)
        return plan
    }

    private static func check(_ option: String, _ port: Int, on host: String) throws(CommandFailure) {
        guard let problem = PortCheck.problem(host: host, port: port) else { return }
        throw CommandFailure("port \(port) on \(host) \(problem): stop what uses it, or choose another with \(option)")
    }

    /// The cluster's encryption key. A folder of certificates may be without it: then encrypted fields fail, and say
    /// why.
    private func encryptionKey(in certificates: String) throws(CertificatesError) -> [UInt8]? {
        let path = encryptionKeyFile ?? "\(certificates)/\(EncryptionKeyFile.name)"
        guard encryptionKeyFile != nil || Paths.exists(path) else { return nil }
        return try EncryptionKeyFile.read(path)
    }

    private func plan(
        _ node: ClusterFile.Node, of file: ClusterFile, data: String, certs: String, secret: String
    ) -> NodePlan {
        let files = "\(certs)/node-\(node.id)"
        let tls = PeerTLS(
            authorityPath: certs + "/peer-ca.pem", certificatePath: files + "/peer.pem", keyPath: files + "/peer.key")
        let listenHost = host ?? node.host
        let web = WebServerSettings(
            host: listenHost, port: node.clientPort, certificatePath: clientCertificate ?? files + "/server.pem",
            keyPath: clientKey ?? files + "/server.key")
        var settings = NodeSettings(
            nodeID: NodeID(node.id), clusterID: file.name, dataPath: Paths.absolute(data),
            nodes: file.nodes.map {
                ClusterMap.Node(id: $0.id, peerHost: $0.host, peerPort: $0.peerPort, clientURL: $0.clientURL)
            }, peerListenHost: listenHost, tls: tls)
        settings.shardCount = file.shards
        settings.replicasPerShard = file.replicas
        settings.certificates.append(CertificateFile("client", path: web.certificatePath))
        if clientCertificate == nil {
            settings.certificates.append(CertificateFile("client-ca", path: certs + "/client-ca.pem"))
        }
        return NodePlan(settings: settings, web: web, administratorSecret: secret)
    }

    private static func greeting(url: String, others: [String], authority: String, token: String) -> String {
        """
        Zonekeeper serves \(url)\(others.isEmpty ? "" : ", for other machines at " + others.joined(separator: ", "))
          certificate authority  \(authority)
          administrator's token  \(token)

        Try, in another shell:
          export ZONEKEEPER_URLS=\(url) ZONEKEEPER_CA=\(authority) ZONEKEEPER_ADMIN_TOKEN_FILE=\(token)
          export ZONEKEEPER_CONTAINER=iCloud.com.example.first
          zonekeeper container create $ZONEKEEPER_CONTAINER
          zonekeeper user create ada
          zonekeeper token create --api
          zonekeeper token create --session --user ada
        Stop it with Ctrl-C.
        """
    }
}

/// What other machines may call this one.
enum MachineNames {
    /// The host name, and the addresses that are not for this machine or its link alone.
    /// Where the system does not tell the addresses, the host name alone: certificates that are there need no more.
    /// - Parameters:
    ///   - atIPv4Alone: whether nobody listens at the others.
    ///   - devices: what asks the system.
    static func all(
        atIPv4Alone: Bool, devices: () throws -> [NIONetworkDevice] = { try System.enumerateDevices() }
    ) -> [String] {
        let addresses: [String]
        do {
            addresses = try devices().compactMap { $0.address?.ipAddress }
        } catch {
            Console.note("warning: new certificates name no addresses of this machine, which cannot be found: \(error)")
            addresses = []
        }
        let reachable = addresses.filter {
            !$0.hasPrefix("127.") && $0 != "::1" && !$0.hasPrefix("fe80:") && !(atIPv4Alone && $0.contains(":"))
        }
        return Array(Set(reachable)).sorted() + [hostName].filter(isHostName)
    }

    private static var hostName: String {
        var system = utsname()
        uname(&system)
        return withUnsafeBytes(of: system.nodename) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// Whether a certificate can name it.
    private static func isHostName(_ name: String) -> Bool {
        !name.isEmpty && name != "localhost"
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "-" || $0 == "." }
    }
}

extension Logger.Level {
    fileprivate static func parse(_ text: String) throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: text) else {
            throw ValidationError(
                "one of \(allCases.map(\.rawValue).joined(separator: ", ")) is expected, not '\(text)'")
        }
        return level
    }
}

/// Everything that `serve` needs to run one node.
struct NodePlan: Sendable {
    var settings: NodeSettings
    var web: WebServerSettings
    var service = ServiceSettings()
    var administratorSecret: String
    /// What URLs in answers begin with; nil: as each client names the node.
    var origin: String?
    /// Where the console's files are; nil: in the binary.
    var consoleFolder: String?
    /// Where traces are written; nil: none is recorded.
    var traces: SpanExport.Settings?
    /// Printed once the node serves.
    var greeting: String?
}

/// What `serve` records of requests as traces.
struct TraceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Record this part of the requests as traces, from 0 to 1 (default: no traces at all).",
            discussion: """
                With 0, those whose clients say so in `traceparent`. Spans are written as OTLP's JSON lines, for a \
                collector.
                """,
            valueName: "part"))
    var traceSample: Double?

    @Option(
        help: ArgumentHelp(
            "The folder of the traces' files (default: `traces` in the data folder).", valueName: "folder"))
    var traceFolder: String?

    @Option(
        help: ArgumentHelp(
            "What the traces' files may take in all (default: 64).", valueName: "mebibytes"))
    var traceMegabytes: Int?

    func validate() throws {
        if let traceSample, !(0...1).contains(traceSample) {
            throw ValidationError("--trace-sample: 0 to 1 is expected, such as 0.01 for one of 100 requests")
        }
        if let traceMegabytes, !(2...1_000_000).contains(traceMegabytes) {
            throw ValidationError("--trace-megabytes: 2 to 1000000 is expected")
        }
        if traceSample == nil, traceFolder != nil || traceMegabytes != nil {
            throw ValidationError("--trace-folder and --trace-megabytes go with --trace-sample")
        }
    }

    /// Gives the node a tracer, if traces are wanted.
    func apply(to settings: inout NodeSettings) -> SpanExport.Settings? {
        guard let traceSample else { return nil }
        settings.tracer = NodeTracer(
            ratio: traceSample, queue: SpanQueue(settings.metrics), random: { .random(in: 0 ... .max) },
            clock: { UInt64(Date().timeIntervalSince1970 * 1e6) * 1_000 })
        var export = SpanExport.Settings(
            folder: traceFolder.map { Paths.absolute($0) } ?? settings.dataPath + "/traces")
        if let traceMegabytes { export.bytesMax = traceMegabytes << 20 }
        return export
    }
}
