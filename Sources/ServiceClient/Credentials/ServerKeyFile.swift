package import Crypto
import Foundation

/// A server-to-server key as it is kept in a file: the private key as PEM, and a line with the id under which the
/// public key is registered. What stands outside a PEM block is skipped by other programs (RFC 7468, section 2).
package struct ServerKeyFile: Sendable {
    /// 64 hexadecimal digits.
    package var id: String
    /// On the curve P-256.
    package var key: P256.Signing.PrivateKey

    private static let idLabel = "Key-ID:"

    package init(id: String, key: P256.Signing.PrivateKey) {
        self.id = id
        self.key = key
    }

    /// - Parameter id: counts more than the file's own, and must be there if the file has none.
    /// - Throws: an error that names the file, and never what is in it.
    package init(path: String, id: String?) throws(ServiceClientError) {
        try self.init(text: try SecretFile.read(path), id: id, path: path)
    }

    /// Reads what a key file holds: PKCS #8 or SEC 1, as OpenSSL writes them.
    package init(text: String, id: String?, path: String) throws(ServiceClientError) {
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("-----BEGIN") && $0.hasSuffix("PRIVATE KEY-----") }),
            let end = lines[begin...].firstIndex(where: { $0.hasPrefix("-----END") })
        else { throw ServiceClientError("\(path) holds no private key: '-----BEGIN PRIVATE KEY-----' is expected") }
        if lines[begin].contains("ENCRYPTED") || lines[begin...end].contains(where: { $0.hasPrefix("Proc-Type:") }) {
            throw ServiceClientError(
                "\(path) is locked with a password; unlock it with `openssl pkcs8 -in \(path) -topk8 -nocrypt`")
        }
        let key: P256.Signing.PrivateKey
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: lines[begin...end].joined(separator: "\n"))
        } catch {
            throw ServiceClientError("\(path) holds no private key of the curve P-256 (prime256v1)")
        }
        let own = lines.first { $0.hasPrefix(Self.idLabel) }.map {
            $0.dropFirst(Self.idLabel.count).trimmingCharacters(in: .whitespaces)
        }
        guard let id = id ?? own, !id.isEmpty else {
            throw ServiceClientError("\(path) has no line '\(Self.idLabel) ...'; name the key's id with --key-id")
        }
        self.init(id: id, key: key)
    }

    /// What `init(text:id:path:)` reads.
    package var text: String { "\(key.pemRepresentation)\n\(Self.idLabel) \(id)\n" }
}

extension ServerKeyFile {
    /// Signs a request as CloudKit Web Services has it: date, SHA-256 of the body, and what follows the host, query
    /// included.
    ///
    /// No two signatures are equal, so a repeated request is no replay.
    /// - Parameters:
    ///   - target: as it is on the wire.
    ///   - time: milliseconds since 1970.
    package func headers(target: String, body: [UInt8], time: Int64) throws -> [(name: String, value: String)] {
        let date = Date(timeIntervalSince1970: Double(time) / 1_000).formatted(.iso8601)
        let message = Self.message(date: date, target: target, body: body)
        let signature = try key.signature(for: message)
        return [
            ("X-Apple-CloudKit-Request-KeyID", id), ("X-Apple-CloudKit-Request-ISO8601Date", date),
            ("X-Apple-CloudKit-Request-SignatureV1", signature.derRepresentation.base64EncodedString()),
        ]
    }

    /// The bytes that are signed.
    package static func message(date: String, target: String, body: [UInt8]) -> [UInt8] {
        let digest = Data(SHA256.hash(data: body)).base64EncodedString()
        return Array("\(date):\(digest):\(target)".utf8)
    }
}

/// Where a server key is to be read from.
package struct ServerKeySource: Sendable {
    package var path: String
    /// Counts more than the file's own.
    package var id: String?

    package init(path: String, id: String? = nil) {
        self.path = path
        self.id = id
    }

    /// - Throws: an error that names the file.
    package func read() throws(ServiceClientError) -> ServerKeyFile { try ServerKeyFile(path: path, id: id) }
}
