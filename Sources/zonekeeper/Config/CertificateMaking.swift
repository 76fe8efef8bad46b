import Certificates
import Foundation

/// Makes what is missing of a cluster's development certificates, and its encryption key beside them.
enum CertificateMaking {
    /// What was made.
    struct Made {
        var authorities = false
        var nodes: [UInt64] = []
        var encryptionKey = false

        var isNothing: Bool { !authorities && nodes.isEmpty && !encryptionKey }
    }

    /// Makes the authorities, each node's certificates and the encryption key where they are not there; what is there is left as
    /// it is. A key is made only before there is data.
    /// - Parameter nodes: each node's id, and where clients reach it.
    static func makeMissing(
        in folder: String, name: String, nodes: [(id: UInt64, host: String?)]
    ) throws -> Made {
        var made = Made()
        let now = Date()
        let missing = nodes.filter { !Paths.exists("\(folder)/node-\($0.id)") }
        let hasAuthorities = Paths.exists(folder + "/client-ca.pem") && Paths.exists(folder + "/peer-ca.pem")
        // Beside data a missing key is a lost one: another would not open what is sealed.
        let parent = (folder as NSString).deletingLastPathComponent
        let places = [parent] + nodes.map { "\(parent)/node-\($0.id)" }
        if !places.contains(where: { Paths.exists($0 + "/node.json") }) {
            made.encryptionKey = try EncryptionKeyFile.makeIfMissing(in: folder)
        }
        guard !missing.isEmpty || !hasAuthorities else { return made }
        let certificates: CertificateFolder
        if hasAuthorities {
            certificates = try CertificateFolder.load(path: folder)
        } else {
            certificates = try CertificateFolder.create(path: folder, commonName: "Zonekeeper \(name)", now: now)
            made.authorities = true
        }
        for node in missing {
            try certificates.issueNode(nodeID: node.id, hosts: [node.host].compactMap(\.self), now: now)
            made.nodes.append(node.id)
        }
        return made
    }

    static func makeMissing(for layout: ClusterLayout) throws -> Made {
        try makeMissing(
            in: layout.certificates, name: layout.file.name, nodes: layout.file.nodes.map { ($0.id, $0.host) })
    }
}
