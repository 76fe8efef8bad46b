import ArgumentParser
import Storage

/// `zonekeeper certs create`
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
            "With --directory: a node's id and the host at which clients reach it, such as 1=db1.example.com; repeat it.",
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
                try CertificateMaking.makeMissing(in: path, name: name, nodes: node.map { ($0.id, $0.host) })
            }
        if made.authorities { print("made the peer and client authorities in \(path)") }
        for id in made.nodes { print("made the certificates of node \(id) in \(path)/node-\(id)") }
        if made.encryptionKey {
            print("made the encryption key \(path)/encryption.key; keep a copy: what it sealed opens with nothing else")
        }
        if made.isNothing { print("everything was there already in \(path)") }
    }
}

/// A node's id, and where clients reach it.
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
