import Certificates
import Foundation
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

    init(file: ClusterFile, path: String) {
        self.file = file
        self.path = Paths.absolute(path)
        data = Paths.absolute(file.data, in: Paths.folder(of: self.path))
    }

    /// Reads a configuration file.
    static func read(_ path: String) throws(CommandFailure) -> ClusterLayout {
        let bytes: [UInt8]
        do throws(DiskError) {
            bytes = try readWholeFile(at: path)
        } catch {
            throw CommandFailure("the configuration file \(path) cannot be read: \(error.reason)")
        }
        do throws(ClusterFileError) {
            return ClusterLayout(file: try ClusterFile(json: bytes), path: path)
        } catch {
            throw CommandFailure("\(path): \(error)")
        }
    }

    var certificates: String { data + "/certs" }
    var clientAuthority: String { certificates + "/client-ca.pem" }
    var encryptionKey: String { certificates + "/" + EncryptionKeyFile.name }
    var administratorToken: String { data + "/admin.token" }
    func folder(of node: ClusterFile.Node) -> String { "\(data)/node-\(node.id)" }
    func pidFile(of node: ClusterFile.Node) -> String { "\(data)/node-\(node.id).pid" }
    func log(of node: ClusterFile.Node) -> String { "\(data)/logs/node-\(node.id).log" }
}

/// Paths as text.
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
}

extension DiskError {
    /// The system's words for the error, without the file.
    var reason: String { String(cString: strerror(code)) }
}
