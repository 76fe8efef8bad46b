import ArgumentParser
import Certificates
import Directory
import Foundation
import RecordModel
import ServiceClient
import Storage

/// A cluster's configuration with the places of everything that it keeps on this machine.
///
/// ```
/// DATA/certs/            authorities, certificates and the encryption key
/// DATA/admin.token       the administrator's secret
/// DATA/node-1/           what node 1 keeps
/// DATA/node-1.pid        the process that `cluster up` started
/// DATA/logs/node-1.log   what it says
/// ```
struct ClusterLayout: Sendable {
    var file: ClusterFile
    /// The configuration file, absolute.
    var path: String
    /// The data folder, absolute.
    var data: String
    /// Whether the only node keeps its data in that folder itself.
    private var isSingle = false

    /// The data folder of a single node, which was made without a configuration file.
    init(single data: String) {
        self.init(file: .single(data: Paths.absolute(data)), path: data)
        isSingle = true
    }

    init(file: ClusterFile, path: String) {
        self.file = file
        self.path = Paths.absolute(path)
        data = Paths.absolute(file.data, in: Paths.folder(of: self.path))
    }

    static func read(_ path: String) throws(CommandFailure) -> ClusterLayout {
        let bytes = try Result { () throws(DiskError) in try readWholeFile(at: path) }
            .mapError { CommandFailure("the configuration file \(path) cannot be read: \($0.reason)") }.get()
        do throws(CommandFailure) {
            return ClusterLayout(file: try ClusterFile(json: bytes), path: path)
        } catch {
            throw CommandFailure("\(path): \(error)")
        }
    }

    var certificates: String { data + "/certs" }
    var clientAuthority: String { certificates + "/client-ca.pem" }
    var encryptionKey: String { certificates + "/" + EncryptionKeyFile.name }
    var administratorToken: String { data + "/admin.token" }
    func folder(of node: ClusterFile.Node) -> String { isSingle ? data : "\(data)/node-\(node.id)" }
    func pidFile(of node: ClusterFile.Node) -> String { "\(data)/node-\(node.id).pid" }
    func log(of node: ClusterFile.Node) -> String { "\(data)/logs/node-\(node.id).log" }
}

enum Paths {
    /// The path from the root, without `.` and `..`; links are left as they are.
    static func absolute(_ path: String, in folder: String = FileManager.default.currentDirectoryPath) -> String {
        var parts: [Substring] = []
        for part in (path.hasPrefix("/") ? path : folder + "/" + path).split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// The folder that holds an absolute path.
    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Keeps an empty variable of a shell from naming the present folder, which would be filled and closed to others.
    /// - Parameter options: with their values, where they were given.
    /// - Throws: `ValidationError` naming an option whose path is empty.
    static func checkNotEmpty(_ options: KeyValuePairs<String, String?>) throws {
        for (option, path) in options where path?.isEmpty == true {
            throw ValidationError("\(option): a path is expected, and it is empty")
        }
    }
}

extension DiskError {
    /// The system's words for the error, without the file.
    var reason: String { String(cString: strerror(code)) }
}

/// Makes what is missing of a cluster's development certificates, and its encryption key beside them.
enum CertificateMaking {
    struct Made {
        var authorities = false
        var nodes: [UInt64] = []
        var encryptionKey = false

        var isNothing: Bool { !authorities && nodes.isEmpty && !encryptionKey }
    }

    /// Makes the authorities, each node's certificates and the encryption key where they are not there; what is there
    /// is left as it is. A key is made only before there is data.
    /// - Parameter nodes: each node's id, and the names and addresses at which clients reach it.
    static func makeMissing(in folder: String, name: String, nodes: [(id: UInt64, hosts: [String])]) throws -> Made {
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
            try certificates.issueNode(nodeID: node.id, hosts: node.hosts, now: now)
            made.nodes.append(node.id)
        }
        return made
    }

    static func makeMissing(for layout: ClusterLayout) throws -> Made {
        try makeMissing(
            in: layout.certificates, name: layout.file.name, nodes: layout.file.nodes.map { ($0.id, [$0.host]) })
    }
}

/// The file with the administrator's token: 32 random bytes as hexadecimal digits, for its owner's eyes only.
enum AdministratorSecret {
    @discardableResult
    static func makeIfMissing(at path: String) throws(CommandFailure) -> Bool {
        do {
            return try PrivateFile.createIfMissing(path, RandomText.hex(bytes: 32) + "\n")
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    static func read(_ path: String) throws -> String {
        let secret = try SecretFile.read(path)
        guard secret.utf8.count >= 32 else {
            throw CommandFailure("\(path) holds no administrator's token: 32 or more characters are expected")
        }
        return secret
    }
}

enum RandomText {
    static func hex(bytes count: Int) -> String {
        Hex.encode((0..<count).map { _ in UInt8.random(in: 0 ... .max) })
    }
}
