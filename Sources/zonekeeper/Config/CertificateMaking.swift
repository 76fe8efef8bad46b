import Certificates
import Foundation

/// Makes what is missing of a cluster's development certificates.
enum CertificateMaking {
    /// What was made.
    struct Made {
        var authorities = false
        var nodes: [UInt64] = []

        var isNothing: Bool { !authorities && nodes.isEmpty }
    }

    /// Makes the authorities and each node's certificates where they are not there; what is there is left as it is.
    /// - Parameter nodes: each node's id, and where clients reach it.
    static func makeMissing(
        in folder: String, name: String, nodes: [(id: UInt64, host: String?)]
    ) throws -> Made {
        var made = Made()
        let now = Date()
        let missing = nodes.filter { !Paths.exists("\(folder)/node-\($0.id)") }
        let hasAuthorities = Paths.exists(folder + "/client-ca.pem") && Paths.exists(folder + "/peer-ca.pem")
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
