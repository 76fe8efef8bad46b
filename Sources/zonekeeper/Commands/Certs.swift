import ArgumentParser
import Certificates
import Foundation
import RecordModel
import ServiceClient
import Storage

struct CertsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certs", abstract: "Make, renew and list the certificates of a cluster.",
        subcommands: [CertsCreateCommand.self, CertsRenewCommand.self, CertsStatusCommand.self])
}

struct CertsOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The cluster's configuration file; the folder is `certs` in its `data`.", valueName: "file"))
    var config: String?

    @Option(help: ArgumentHelp("The folder of the certificates.", valueName: "folder"))
    var directory: String?

    func validate() throws {
        if (config == nil) == (directory == nil) { throw ValidationError("either --config or --directory is expected") }
        try Paths.checkNotEmpty(["--config": config, "--directory": directory])
    }

    /// The folder, and the configuration where that names it.
    func folder() throws -> (path: String, layout: ClusterLayout?) {
        if let directory { return (Paths.absolute(directory), nil) }
        let layout = try ClusterLayout.read(config ?? "")
        return (layout.certificates, layout)
    }
}

struct CertsCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make the authorities, each node's certificates and the encryption key where they are missing.",
        discussion: """
            What is there is never overwritten. A node needs peer-ca.pem, client-ca.pem, encryption.key and its \
            own folder node-<id>; keep the authorities' keys (*-ca.key) off the nodes: whoever has them can be a \
            node. encryption.key, the same on every node, opens encrypted fields: keep a copy in a safe place, as \
            nothing can replace it.
            """)

    @OptionGroup var options: CertsOptions

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "With --directory: a node's id and the host at which clients reach it, such as 1=db1.example.com; "
                + "repeat it.",
            valueName: "id=host"))
    var node: [NodeHost] = []

    @Option(help: "With --directory: the cluster's name, which the authorities' names begin with.")
    var name = "cluster"

    func validate() throws {
        if options.directory != nil, node.isEmpty {
            throw ValidationError("--directory needs --node, once for each node")
        }
        if options.config != nil, !node.isEmpty { throw ValidationError("--node goes with --directory") }
    }

    func run() async throws {
        let (path, layout) = try options.folder()
        do throws(DiskError) {
            try makeFolder(at: path)
        } catch {
            throw CommandFailure("the folder \(path) cannot be made: \(error.reason)")
        }
        let made =
            if let layout {
                try CertificateMaking.makeMissing(for: layout)
            } else {
                try CertificateMaking.makeMissing(
                    in: path, name: name, nodes: node.map { ($0.id, [$0.host].compactMap(\.self)) })
            }
        if made.authorities { print("made the peer and client authorities in \(path)") }
        for id in made.nodes { print("made the certificates of node \(id) in \(path)/node-\(id)") }
        if made.encryptionKey {
            print("made the encryption key \(path)/encryption.key; keep a copy: what it sealed opens with nothing else")
        }
        if made.isNothing { print("everything was there already in \(path)") }
    }
}

struct NodeHost: ExpressibleByArgument, Hashable {
    var id: UInt64
    var host: String?

    init?(argument: String) {
        let sides = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let id = UInt64(sides[0]), (1...65_535).contains(id), sides.count == 1 || !sides[1].isEmpty else {
            return nil
        }
        self.id = id
        host = sides.count == 1 ? nil : String(sides[1])
    }
}

struct CertsRenewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew", abstract: "Issue every node's certificates again, for the same keys and names.",
        discussion:
            "Running nodes use renewed certificates for new connections within a second; nothing needs a restart.")

    @OptionGroup var options: CertsOptions

    func run() async throws {
        let path = try options.folder().path
        let renewed = try CertificateFolder.load(path: path).renew(now: Date())
        for file in renewed { print("renewed \(file)") }
        print("running nodes use them for new connections within a second")
    }
}

struct CertsStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "List the certificates, whom they name and how long they last.")

    @OptionGroup var options: CertsOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let now = Date()
        let list = try CertificateFolder.status(path: try options.folder().path)
        if json {
            let certificates = list.map { certificate in
                JSONValue.members([
                    "file": .string(certificate.file), "subject": .string(certificate.subject),
                    "issuer": .string(certificate.issuer), "names": .strings(certificate.names),
                    "notBefore": .string(Times.text(certificate.notBefore)),
                    "notAfter": .string(Times.text(certificate.notAfter)),
                    "daysLeft": .integer(Int64(certificate.daysLeft(at: now))),
                ])
            }
            return Console.print(JSONValue.members(["certificates": .array(certificates)]).serialized())
        }
        var table = Table("FILE", "VALID UNTIL", "LEFT", "NAMES")
        for certificate in list {
            let left = certificate.isExpired(at: now) ? "expired" : "\(certificate.daysLeft(at: now)) days"
            table.add([
                certificate.file, Times.text(certificate.notAfter), left,
                certificate.names.isEmpty ? certificate.subject : certificate.names.joined(separator: " "),
            ])
        }
        print(table.text)
    }
}
